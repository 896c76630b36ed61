#!/usr/bin/env python3
"""Effective samples per gradient on posteriordb, beside Stan's NUTS and nutpie, all in one run.

    tests/bench/posteriordb.py EMASS [--seeds 2] [--first-seed 1] [--only NAME]... [--samplers hmc,nuts,diag,dense,short,nutpie]
                               [--all] [--checkout FOLDER] [--jobs 1] [--timeout 600] [--markdown FILE]
                               [--picture FILE] [--json FILE]

All posteriors of EMASS_DATA/posteriordb that have reference draws: NAME.stan with NAME.json and NAME.ref.json,
and those of its folder `more` (posteriors.csv, models/, data/) for which there is a NAME.ref.json in
there. --only names some of them, or others of `more`: those are judged on the program's parameters, and have
no z. 4 chains each:

    hmc, nuts     `emass run` with nothing but the model, and with sampler nuts (on request: walnuts, tempered,
                  or centred, which is hmc with mass.noncentring: off)
    diag, dense   Stan's NUTS as stanli runs it with its defaults, 1000 + 1000 iterations, by metric
    short         Stan's NUTS, dense_e, with as many iterations of warmup as hmc took
    nutpie        with its defaults, on the gradients of stanli (on request: low rank)

What is counted are gradients, those of thinned draws by their number, with those of warmup and its start (of Stan,
but for its search of a first step size). The figure of merit is the smallest ESS over the parameters that have
reference draws, per 1000 gradients: of means (bulk), of squares about the mean, of the tail. z is the largest
deviation, from the reference draws, of a mean or of a standard deviation in standard errors of both.
A run has moved where R-hat is below 1.1 for all these parameters; the column says in how many runs of emass
that is so, of all seeds (and samplers). A run that fails, or takes longer than --timeout seconds, has not
moved; its posterior has no figure for that sampler, and no ratio. The next call with --json tries it again.

--all takes every posterior there is, of the folder or of a checkout of posteriordb; runs of emass end when they
are done. Its table and picture are in posteriordb_all.py.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import h5py
import numpy as np

import forked
import posteriordb_all
from posteriors import find_posteriors

N_CHAIN = 4
MOVED_R_HAT = 1.1
OURS = ("hmc", "nuts", "walnuts", "centred", "tempered")


# ---- running ----

class Run:
    """Draws by parameter [chain, draw], the gradients that were spent, seconds of the processor, and megabytes."""

    def __init__(self, draws, warmup_gradients, draw_gradients, said="", warmup=1000, divergences=0, seconds=math.nan,
                 memory=math.nan):
        self.draws = draws
        self.warmup_gradients = warmup_gradients
        self.gradients = warmup_gradients + draw_gradients
        self.said = said
        self.warmup = warmup
        self.divergences = int(divergences)
        self.seconds = seconds
        self.memory = memory


def by_element(name, values):
    """{name[2,3]: [chain, draw]} of an array [chain, draw, ...]."""
    shape = values.shape[2:]
    if not shape:
        return {name: values}
    return {f"{name}[{','.join(str(i + 1) for i in index)}]": values[(slice(None), slice(None)) + index]
            for index in np.ndindex(*shape)}


SETTINGS = {"centred": ("mass.noncentring=off",), "tempered": ()}


def spent(who):
    """Seconds of the processor, and megabytes at the most, of this process or of those that it has waited for."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def run_emass(emass, sampler, posterior, seed, n_draw=1000):
    with tempfile.TemporaryDirectory() as folder:
        config, output = pathlib.Path(folder, "run.yaml"), pathlib.Path(folder, "run.h5")
        config.write_text(f"model: {{name: stan, program: {posterior.program}, data: {posterior.data}}}\n"
                          + (f"run: {{draws: {n_draw}}}\n" if n_draw else "")
                          + ("temper: {}\n" if sampler == "tempered" else ""))
        before, _ = spent(resource.RUSAGE_CHILDREN)
        settings = SETTINGS.get(sampler, (f"sampler.name={sampler}",))
        subprocess.run([emass, "run", config, "--output", output, "--quiet", "--seed", str(seed),
                        *(word for one in settings for word in ("--set", one))], check=True)
        after, memory = spent(resource.RUSAGE_CHILDREN)
        with h5py.File(output) as file:
            draws = {}
            for name, values in file["posterior"].items():
                if values.ndim >= 2 and values.dtype.kind == "f":
                    draws.update(by_element(name, np.asarray(values)))
            if sampler == "tempered":  # gradients of the other temperatures are not in the file
                return Run(draws, math.nan, math.nan, divergences=file.attrs["divergences"],
                           seconds=after - before, memory=memory)
            said = file.attrs["warmup"]
            divergences = np.asarray(file["sample_stats/diverging"]).sum() if "sample_stats/diverging" in file else 0
            return Run(draws, int(file["mass_adaptation/stage_gradients"][-1]),
                       int(np.asarray(file["sample_stats/n_steps"]).sum() * file.attrs.get("thinning", 1)),
                       said if isinstance(said, str) else said.decode(),
                       int(np.asarray(file.attrs["tuning_steps"]).reshape(-1)[0]), divergences, after - before, memory)


def stanli_model(posterior):
    import stanli
    return stanli.Model(stan_code=posterior.program.read_text(), data=posterior.data.read_text())


def bracketed(name):
    """y.2.3 is y[2,3]."""
    head, *indices = name.split(".")
    return f"{head}[{','.join(indices)}]" if indices else head


def bridgestan_model(posterior):
    import stanli
    return stanli.bridgestan_model(stan_file=str(posterior.program), data=str(posterior.data))


def parameters_of(model):
    """The names of a program's parameters, transformed ones left out."""
    return [bracketed(name) for name in model.param_names()]


def run_stan(metric, posterior, seed, warmup=1000):
    import stanli
    before = time.process_time()
    fit = stanli_model(posterior).sample(chains=N_CHAIN, seed=seed, metric=metric, warmup=warmup,
                                         samples=1000, save_warmup=True, refresh=0)
    seconds = time.process_time() - before
    steps = fit.sampler_stats[:, :, stanli.SAMPLER_COLUMNS.index("n_leapfrog__")]
    diverged = fit.sampler_stats[:, -1000:, stanli.SAMPLER_COLUMNS.index("divergent__")]
    draws = {bracketed(name): fit.draws(name)[:, -1000:] for name in fit.names}
    return Run(draws, int(steps[:, :-1000].sum()), int(steps[:, -1000:].sum()), warmup=warmup,
               divergences=diverged.sum(), seconds=seconds, memory=spent(resource.RUSAGE_SELF)[1])


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


def run_nutpie(posterior, seed, **settings):
    import nutpie
    before = time.process_time()
    model = bridgestan_model(posterior)
    dim = model.param_unc_num()
    compiled = nutpie.compiled_pyfunc.from_pyfunc(
        dim, lambda: recoverable(model.log_density_gradient), lambda *_: lambda theta: {"theta": theta},
        [np.dtype("float64")], [(dim,)], ["theta"])
    trace = nutpie.sample(compiled, chains=N_CHAIN, seed=seed, cores=1, progress_bar=False, **settings)
    seconds = time.process_time() - before
    theta = np.asarray(trace.posterior["theta"])
    names = [bracketed(name) for name in model.param_names(include_tp=True)]
    values = np.array([[model.param_constrain(row, include_tp=True) for row in chain] for chain in theta])
    return Run({name: values[:, :, i] for i, name in enumerate(names)},
               int(np.asarray(trace.warmup_sample_stats["n_steps"]).sum()),
               int(np.asarray(trace.sample_stats["n_steps"]).sum()),
               warmup=trace.warmup_sample_stats.sizes["draw"],
               divergences=np.asarray(trace.sample_stats["diverging"]).sum(), seconds=seconds,
               memory=spent(resource.RUSAGE_SELF)[1])


# ---- what a run is worth ----

def worse(key, one, other):
    """Of two figures; NaN, which chains have that stand still, is worse than all."""
    if key in ("bulk", "square", "tail"):
        return 0.0 if math.isnan(other) else min(one, other)
    return math.inf if math.isnan(other) else max(one, other)


def judge(posterior, run):
    import arviz
    program = bridgestan_model(posterior)
    reference = posterior.reference["parameters"] if posterior.reference else dict.fromkeys(parameters_of(program))
    out = {"bulk": math.inf, "square": math.inf, "tail": math.inf, "r_hat": 1.0}
    if posterior.reference:
        out.update(z=0.0, z_sd=0.0)
    for name, known in reference.items():
        if name not in run.draws or (not known and np.ptp(run.draws[name]) == 0):  # such as the zeros of a factor
            continue
        x = np.asarray(run.draws[name])
        square = (x - x.mean()) ** 2
        found = {"bulk": arviz.ess(x), "square": arviz.ess(square), "tail": arviz.ess(x, method="tail"), "r_hat": arviz.rhat(x)}
        if known:
            of_one = known["sd"] / math.sqrt(posterior.reference["reference_draws"])
            kurtosis_factor = square.std() / (2 * x.std() ** 2)  # of the sd of one draw, over its sd
            found["z"] = abs(x.mean() - known["mean"]) / math.hypot(float(arviz.mcse(x)), of_one)
            found["z_sd"] = abs(x.std() - known["sd"]) / math.hypot(float(arviz.mcse(x, method="sd")), kurtosis_factor * of_one)
        for key, value in found.items():
            out[key] = worse(key, out[key], float(value))
    if math.isinf(out["bulk"]):
        raise ValueError("none of the parameters to judge is among the draws")
    for key in ("bulk", "square", "tail"):
        out[f"{key}_per_k"] = 1000 * out[key] / run.gradients
        out[f"{key}_per_k_drawn"] = 1000 * out[key] / (run.gradients - run.warmup_gradients)
    out.update(gradients=run.gradients, warmup_gradients=run.warmup_gradients, said=run.said, warmup=run.warmup,
               divergences=run.divergences, seconds=run.seconds, memory=run.memory, dim=program.param_unc_num(),
               bulk_per_s=out["bulk"] / posteriordb_all.without_start(run.seconds))
    return out


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def mean_over_seeds(rows):
    """None where a run has no figures."""
    if not all(rows):
        return None
    out = {key: geometric_mean([max(row[key], 1e-9) for row in rows])
           for key in rows[0] if key.endswith(("_per_k", "_per_k_drawn", "gradients"))}
    out.update({key: max(row[key] for row in rows) for key in ("r_hat", "z", "z_sd") if key in rows[0]})
    return out


# ---- the table and the picture ----

STAN = ("diag", "dense")
RATIOS = (("/ Stan", "hmc", "bulk_per_k", STAN), ("squares", "hmc", "square_per_k", STAN),
          ("tail", "hmc", "tail_per_k", STAN), ("draws", "hmc", "bulk_per_k_drawn", STAN),
          ("nuts / Stan", "nuts", "bulk_per_k", STAN), ("hmc / nutpie", "hmc", "bulk_per_k", ("nutpie",)))
TITLES = {"diag": "Stan diag", "dense": "Stan dense", "short": "dense, short"}


def line(cells, out):
    print("| " + " | ".join(cells) + " |", file=out)


def figure(value):
    return "-" if value is None else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def ratio(of, ours, key, rivals):
    """Ours to the better of the rivals; None where one of them has no figures."""
    if not all(of[s] for s in (ours, *rivals)):
        return None
    return of[ours][key] / max(of[rival][key] for rival in rivals)


def write_table(results, moved, samplers, out):
    """ESS per 1000 gradients; then ratios to the better of others: of means, of squares, of the tail,
    of means without warmup; the largest z and R-hat of ours, and how many of our runs moved."""
    ratios = {title: [ratio(of, ours, key, rivals) for of in results.values()]
              for title, ours, key, rivals in RATIOS if {ours, *rivals} <= set(samplers)}
    ours = [s for s in samplers if s in OURS] or samplers
    line(["posterior", *(TITLES.get(s, s) for s in samplers), *ratios, "z", "R-hat", "moved"], out)
    line(["---"] + ["--:"] * (len(samplers) + len(ratios) + 3), out)
    for i, (name, of) in enumerate(results.items()):
        judged = [of[s] for s in ours if of[s]]
        z = [max(r["z"], r["z_sd"]) for r in judged if "z" in r]
        line([name, *(figure(of[s] and of[s]["bulk_per_k"]) for s in samplers),
              *(figure(column[i]) for column in ratios.values()),
              f"{max(z):.1f}" if z else "-", f"{max(r['r_hat'] for r in judged):.3f}" if judged else "-",
              "{} of {}".format(*(sum(moved[name, s][k] for s in ours) for k in (0, 1)))], out)
    for title, summary in (("geometric mean", geometric_mean), ("least", min)):
        known = [[value for value in column if value is not None] for column in ratios.values()]
        line([title, *("" for _ in samplers), *(figure(summary(of)) if of else "-" for of in known), "", "", ""], out)


def draw_picture(results, samplers, path):
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "posteriordb"})
    from matplotlib import pyplot
    names = sorted((name for name in results if any(results[name].values())), key=lambda name: max(of["bulk_per_k"] for of in results[name].values() if of))
    figure, axes = pyplot.subplots(figsize=(7, 0.28 * len(names) + 1.2), layout="constrained")
    for sampler, marker in zip(samplers, "osD^v<"):
        axes.plot([results[name][sampler]["bulk_per_k"] if results[name][sampler] else math.nan for name in names],
                  range(len(names)), marker,
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
    parser.add_argument("--all", action="store_true", help="also posteriors without reference draws; runs until done")
    parser.add_argument("--checkout", help="of posteriordb: its posteriors, instead of those of EMASS_DATA")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--samplers", default="hmc,nuts,diag,dense,short,nutpie")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that a run may take")
    parser.add_argument("--markdown", type=argparse.FileType("w"), default=sys.stdout)
    parser.add_argument("--picture")
    parser.add_argument("--json", help="keeps what was measured; what stands there is not run again")
    return parser.parse_args(arguments)


def run_one(options, sampler, posterior, seed):
    if sampler in OURS:
        return run_emass(options.emass, sampler, posterior, seed, None if options.all else 1000)
    if sampler == "nutpie":
        return run_nutpie(posterior, seed)
    if sampler == "low rank":
        return run_nutpie(posterior, seed, low_rank_modified_mass_matrix=True)
    if sampler == "short":
        return run_stan("dense_e", posterior, seed, run_emass(options.emass, "hmc", posterior, seed).warmup)
    return run_stan(f"{sampler}_e", posterior, seed)


Task = collections.namedtuple("Task", "posterior sampler seed key")


def measure(options, tasks, kept):
    """Runs what was not kept, and adds it."""
    missing = [task for task in tasks if task.key not in kept]

    def call(task):
        return judge(task.posterior, run_one(options, task.sampler, task.posterior, task.seed))

    for task, judged, error in forked.each(call, missing, options.jobs, options.timeout):
        if error:
            print(f"{task.key}: failed: {error}", file=sys.stderr, flush=True)
            continue
        kept[task.key] = judged
        print(f"{task.key}: " + ", ".join(f"{k} {v:.3g}" for k, v in judged.items()
                                          if k in ("bulk_per_k", "square_per_k", "tail_per_k", "r_hat", "z", "z_sd"))
              + f"; {judged['warmup_gradients']} + {judged['gradients'] - judged['warmup_gradients']} {judged['said']}",
              file=sys.stderr, flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(kept, indent=1))


def main():
    options = parse(sys.argv[1:])
    warnings.filterwarnings("ignore")
    import arviz  # here, so that the processes of the calls need not
    data = os.environ.get("EMASS_DATA")
    if not data and not options.checkout:
        sys.exit("posteriordb.py: EMASS_DATA is not set: expected the folder that posteriordb is in, or --checkout")
    from_folder = pathlib.Path(options.checkout) if options.checkout else pathlib.Path(data, "posteriordb")
    samplers = options.samplers.split(",")
    kept = json.loads(pathlib.Path(options.json).read_text()) if options.json and os.path.exists(options.json) else {}
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder  # what a run that is ended leaves behind goes with it
        posteriors = find_posteriors(from_folder, options.only, folder, options.all)
        tasks = [Task(posterior, sampler, seed, f"{posterior.name} {sampler} {seed}")
                 for posterior in posteriors for sampler in samplers
                 for seed in range(options.first_seed, options.first_seed + options.seeds)]
        measure(options, tasks, kept)
    rows = collections.defaultdict(list)
    for task in tasks:
        rows[task.posterior.name, task.sampler].append(kept.get(task.key))
    if options.all:
        posteriordb_all.write(rows, [p.name for p in posteriors], samplers, OURS, options.markdown)
        if options.picture:
            posteriordb_all.draw(rows, [p.name for p in posteriors], samplers, OURS, options.picture)
        return
    results = {p.name: {s: mean_over_seeds(rows[p.name, s]) for s in samplers} for p in posteriors}
    moved = {key: (sum(bool(row) and row["r_hat"] < MOVED_R_HAT for row in of), len(of)) for key, of in rows.items()}
    write_table(results, moved, samplers, options.markdown)
    if options.picture:
        draw_picture(results, samplers, options.picture)


if __name__ == "__main__":
    main()
