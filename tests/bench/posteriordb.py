#!/usr/bin/env python3
"""Effective samples per gradient on posteriordb, beside Stan's NUTS and nutpie, all in one run.

    tests/bench/posteriordb.py EMASS [--seeds 2] [--first-seed 1] [--only NAME]... [--samplers hmc,nuts,diag,dense,short,nutpie]
                               [--markdown FILE] [--picture FILE] [--json FILE]

For every NAME.stan with NAME.json and NAME.ref.json in EMASS_DATA/posteriordb, 4 chains each:

    hmc, nuts     `emass run` with nothing but the model, and with sampler nuts (or walnuts, on request)
    diag, dense   Stan's NUTS as stanli runs it with its defaults, 1000 + 1000 iterations, by metric
    short         Stan's NUTS, dense_e, with as many iterations of warmup as hmc took
    nutpie        with its defaults, on the gradients of stanli

What is counted are gradients, in which warmup and its start are included (of Stan, but for its search
of a first step size). The figure of merit is the smallest ESS over the parameters that have reference
draws, per 1000 gradients: of means (bulk), of squares about the mean, of the tail. z is the largest
deviation, from the reference draws, of a mean or of a standard deviation in standard errors of both.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import h5py
import numpy as np

N_CHAIN = 4
OURS = ("hmc", "nuts", "walnuts")


# ---- running ----

class Posterior:
    """A program, its data, and what its reference draws say."""

    def __init__(self, path):
        self.name = path.name.removesuffix(".stan")
        self.program = path
        self.data = path.with_suffix(".json")
        self.reference = json.loads(path.with_suffix(".ref.json").read_text())


class Run:
    """Draws by parameter [chain, draw], and the gradients that were spent."""

    def __init__(self, draws, warmup_gradients, draw_gradients, said="", warmup=1000):
        self.draws = draws
        self.warmup_gradients = int(warmup_gradients)
        self.gradients = int(warmup_gradients) + int(draw_gradients)
        self.said = said
        self.warmup = warmup


def by_element(name, values):
    """{name[2,3]: [chain, draw]} of an array [chain, draw, ...]."""
    shape = values.shape[2:]
    if not shape:
        return {name: values}
    return {f"{name}[{','.join(str(i + 1) for i in index)}]": values[(slice(None), slice(None)) + index]
            for index in np.ndindex(*shape)}


def run_emass(emass, sampler, posterior, seed):
    with tempfile.TemporaryDirectory() as folder:
        config, output = pathlib.Path(folder, "run.yaml"), pathlib.Path(folder, "run.h5")
        config.write_text(f"model: {{name: stan, program: {posterior.program}, data: {posterior.data}}}\n")
        subprocess.run([emass, "run", config, "--output", output, "--quiet", "--seed", str(seed),
                        "--set", f"sampler.name={sampler}"], check=True)
        with h5py.File(output) as file:
            draws = {}
            for name, values in file["posterior"].items():
                if values.ndim >= 2 and values.dtype.kind == "f":
                    draws.update(by_element(name, np.asarray(values)))
            said = file.attrs["warmup"]
            return Run(draws, np.asarray(file["mass_adaptation/stage_gradients"])[-1],
                       np.asarray(file["sample_stats/n_steps"]).sum(),
                       said if isinstance(said, str) else said.decode(),
                       int(np.asarray(file.attrs["tuning_steps"]).reshape(-1)[0]))


def stanli_model(posterior):
    import stanli
    return stanli.Model(stan_code=posterior.program.read_text(), data=posterior.data.read_text())


def bracketed(name):
    """y.2.3 is y[2,3]."""
    head, *indices = name.split(".")
    return f"{head}[{','.join(indices)}]" if indices else head


def run_stan(metric, posterior, seed, warmup=1000):
    import stanli
    fit = stanli_model(posterior).sample(chains=N_CHAIN, seed=seed, metric=metric, warmup=warmup,
                                         samples=1000, save_warmup=True, refresh=0)
    steps = fit.sampler_stats[:, :, stanli.SAMPLER_COLUMNS.index("n_leapfrog__")]
    draws = {bracketed(name): fit.draws(name)[:, -1000:] for name in fit.names}
    return Run(draws, steps[:, :-1000].sum(), steps[:, -1000:].sum(), warmup=warmup)


class Rejected(ArithmeticError):
    """A density that is not defined at a point, which nutpie goes around."""
    is_recoverable = True


def recoverable(log_density_gradient):
    def wrapped(theta):
        try:
            return log_density_gradient(theta)
        except RuntimeError as error:
            raise Rejected(str(error)) from error
    return wrapped


def run_nutpie(posterior, seed):
    import nutpie
    import stanli
    model = stanli.bridgestan_model(stan_file=str(posterior.program), data=str(posterior.data))
    dim = model.param_unc_num()
    compiled = nutpie.compiled_pyfunc.from_pyfunc(
        dim, lambda: recoverable(model.log_density_gradient), lambda *_: lambda theta: {"theta": theta},
        [np.dtype("float64")], [(dim,)], ["theta"])
    trace = nutpie.sample(compiled, chains=N_CHAIN, seed=seed, cores=1, progress_bar=False)
    theta = np.asarray(trace.posterior["theta"])
    names = [bracketed(name) for name in model.param_names(include_tp=True)]
    values = np.array([[model.param_constrain(row, include_tp=True) for row in chain] for chain in theta])
    return Run({name: values[:, :, i] for i, name in enumerate(names)},
               np.asarray(trace.warmup_sample_stats["n_steps"]).sum(),
               np.asarray(trace.sample_stats["n_steps"]).sum(),
               warmup=trace.warmup_sample_stats.sizes["draw"])


# ---- what a run is worth ----

def judge(posterior, run):
    import arviz
    reference = posterior.reference["parameters"]
    n_reference = posterior.reference["reference_draws"]
    out = {"bulk": math.inf, "square": math.inf, "tail": math.inf, "r_hat": 1.0, "z": 0.0, "z_sd": 0.0}
    for name, known in reference.items():
        if name not in run.draws:
            continue
        x = np.asarray(run.draws[name])
        square = (x - x.mean()) ** 2
        ess, ess_square = float(arviz.ess(x)), float(arviz.ess(square))
        mcse = x.std() / math.sqrt(float(arviz.ess(x, method="mean")))
        sd_error = square.std() / math.sqrt(float(arviz.ess(square, method="mean"))) / (2 * x.std())
        out["bulk"] = min(out["bulk"], ess)
        out["square"] = min(out["square"], ess_square)
        out["tail"] = min(out["tail"], float(arviz.ess(x, method="tail")))
        out["r_hat"] = max(out["r_hat"], float(arviz.rhat(x)))
        kurtosis_factor = square.std() / (2 * x.std() ** 2)  # of the sd of one draw, over its sd
        out["z"] = max(out["z"], abs(x.mean() - known["mean"]) /
                       math.hypot(mcse, known["sd"] / math.sqrt(n_reference)))
        out["z_sd"] = max(out["z_sd"], abs(x.std() - known["sd"]) /
                          math.hypot(sd_error, known["sd"] * kurtosis_factor / math.sqrt(n_reference)))
    for key in ("bulk", "square", "tail"):
        out[f"{key}_per_k"] = 1000 * out[key] / run.gradients
        out[f"{key}_per_k_drawn"] = 1000 * out[key] / (run.gradients - run.warmup_gradients)
    out.update(gradients=run.gradients, warmup_gradients=run.warmup_gradients, said=run.said,
               warmup=run.warmup)
    return out


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def mean_over_seeds(rows):
    out = {key: geometric_mean([max(row[key], 1e-9) for row in rows])
           for key in rows[0] if key.endswith(("_per_k", "_per_k_drawn", "gradients"))}
    out.update({key: max(row[key] for row in rows) for key in ("r_hat", "z", "z_sd")})
    return out


# ---- the table and the picture ----

STAN = ("diag", "dense")
RATIOS = (("/ Stan", "hmc", "bulk_per_k", STAN), ("squares", "hmc", "square_per_k", STAN),
          ("tail", "hmc", "tail_per_k", STAN), ("draws", "hmc", "bulk_per_k_drawn", STAN),
          ("nuts / Stan", "nuts", "bulk_per_k", STAN), ("hmc / nutpie", "hmc", "bulk_per_k", ("nutpie",)))
TITLES = {"diag": "Stan diag", "dense": "Stan dense", "short": "dense, short"}


def line(cells, out):
    print("| " + " | ".join(cells) + " |", file=out)


def write_table(results, samplers, out):
    """ESS per 1000 gradients; then ratios to the better of others: of means, of squares, of the tail,
    of means without warmup; the largest z and R-hat of ours."""
    ratios = {title: [of[ours][key] / max(of[rival][key] for rival in rivals) for of in results.values()]
              for title, ours, key, rivals in RATIOS if {ours, *rivals} <= set(samplers)}
    ours = [s for s in samplers if s in OURS]
    line(["posterior", *(TITLES.get(s, s) for s in samplers), *ratios, "z", "R-hat"], out)
    line(["---"] + ["--:"] * (len(samplers) + len(ratios) + 2), out)
    for i, (name, of) in enumerate(results.items()):
        line([name, *(f"{of[s]['bulk_per_k']:.2g}" if of[s]["bulk_per_k"] < 100 else f"{of[s]['bulk_per_k']:.0f}"
                      for s in samplers),
              *(f"{column[i]:.2g}" if column[i] < 100 else f"{column[i]:.0f}" for column in ratios.values()),
              f"{max([max(of[s]['z'], of[s]['z_sd']) for s in ours], default=math.nan):.1f}",
              f"{max([of[s]['r_hat'] for s in ours], default=math.nan):.3f}"], out)
    for title, summary in (("geometric mean", geometric_mean), ("least", min)):
        line([title, *("" for _ in samplers), *(f"{summary(column):.2g}" for column in ratios.values()),
              "", ""], out)


def draw_picture(results, samplers, path):
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "posteriordb"})
    from matplotlib import pyplot
    names = sorted(results, key=lambda name: max(results[name][s]["bulk_per_k"] for s in samplers))
    figure, axes = pyplot.subplots(figsize=(7, 0.28 * len(names) + 1.2), layout="constrained")
    for sampler, marker in zip(samplers, "osD^v<"):
        axes.plot([results[name][sampler]["bulk_per_k"] for name in names], range(len(names)), marker,
                  label=TITLES.get(sampler, sampler), alpha=0.8)
    axes.set(xscale="log", yticks=range(len(names)), yticklabels=names,
             xlabel="smallest bulk ESS per 1000 gradients, warmup included")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


# ---- all of it ----

def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emass")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--only", action="append")
    parser.add_argument("--samplers", default="hmc,nuts,diag,dense,short,nutpie")
    parser.add_argument("--markdown", type=argparse.FileType("w"), default=sys.stdout)
    parser.add_argument("--picture")
    parser.add_argument("--json", help="keeps what was measured; what stands there is not run again")
    return parser.parse_args(arguments)


def run_one(options, sampler, posterior, seed):
    if sampler in OURS:
        return run_emass(options.emass, sampler, posterior, seed)
    if sampler == "nutpie":
        return run_nutpie(posterior, seed)
    if sampler == "short":
        return run_stan("dense_e", posterior, seed, run_emass(options.emass, "hmc", posterior, seed).warmup)
    return run_stan(f"{sampler}_e", posterior, seed)


def main():
    options = parse(sys.argv[1:])
    warnings.filterwarnings("ignore")
    data = os.environ.get("EMASS_DATA")
    if not data:
        sys.exit("posteriordb.py: EMASS_DATA is not set: expected the folder that posteriordb is in")
    posteriors = [Posterior(path) for path in sorted(pathlib.Path(data, "posteriordb").glob("*.stan"))
                  if not options.only or path.name.removesuffix(".stan") in options.only]
    samplers = options.samplers.split(",")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    kept = json.loads(pathlib.Path(options.json).read_text()) if options.json and os.path.exists(options.json) else {}
    for posterior in posteriors:
        for sampler in samplers:
            for seed in seeds:
                key = f"{posterior.name} {sampler} {seed}"
                if key in kept:
                    continue
                kept[key] = judge(posterior, run_one(options, sampler, posterior, seed))
                print(f"{key}: " + ", ".join(f"{k} {v:.3g}" for k, v in kept[key].items()
                                             if k in ("bulk_per_k", "square_per_k", "tail_per_k", "r_hat", "z", "z_sd"))
                      + f"; {kept[key]['warmup_gradients']} + {kept[key]['gradients'] - kept[key]['warmup_gradients']} {kept[key]['said']}",
                      file=sys.stderr, flush=True)
                if options.json:
                    pathlib.Path(options.json).write_text(json.dumps(kept, indent=1))
    results = {p.name: {s: mean_over_seeds([kept[f"{p.name} {s} {seed}"] for seed in seeds])
                        for s in samplers} for p in posteriors}
    write_table(results, samplers, options.markdown)
    if options.picture:
        draw_picture(results, samplers, options.picture)


if __name__ == "__main__":
    main()
