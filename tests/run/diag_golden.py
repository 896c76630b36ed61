#!/usr/bin/env python3
"""emass summary against ArviZ: every column to 1e-8, on any number of ranks; emass loo likewise, down to
k. TAP; $1: the build."""
import csv
import io
import math
import os
import sys
import tempfile

import lib
from lib import EMASS, report

lib.needs_packages("summary equals ArviZ")

import logging  # noqa: E402
import warnings  # noqa: E402

import arviz as az  # noqa: E402
import numpy as np  # noqa: E402

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

PERCENT = {"5%": 5, "50%": 50, "95%": 95}


def autoregressive(z, a):
    x = z.copy()
    for t in range(1, x.shape[1]):
        x[:, t] = a * x[:, t - 1] + z[:, t]
    return x


def place(x, value):
    x = x.copy()
    x[-1, 3] = value
    return x


def posterior(seed, n_chain, n_draw):
    """Draws by name, and where emass follows posterior rather than ArviZ (src/diagnostics/diag.h): the
    value expected, or None to leave a column to tests/unit/diagnostics/test_diag.c."""
    rng = np.random.default_rng(seed)
    chain = np.arange(n_chain)[:, None]
    z = rng.normal(size=(n_chain, n_draw))
    draws = {
        "iid": z,
        "slow": autoregressive(z, 0.9),
        "antithetic": autoregressive(z, -0.6),
        "cauchy": rng.standard_cauchy(size=z.shape),
        "lognormal": np.exp(2 * z),
        "large": 1e6 + z,
        "small": 1e-9 * z,
        "shifted": z + 0.3 * chain,
        "widening": z * (1 + chain),
        "stuck": np.where(chain == 0, 0.25, z),
        "ties": np.round(3 * z),
        "constant": np.full(z.shape, 0.1),
        "nan": place(z, math.nan),
        "infinite": place(z, math.inf),
        "vector": rng.normal(size=(n_chain, n_draw, 2, 3)),
    }
    constant = {c: math.nan for c in ("mcse_mean", "ess_bulk", "ess_tail", "r_hat")} | {"sd": 0}
    differs = {name: {} for name in draws}
    differs["constant"] = constant
    differs["infinite"] = {"ess_tail": math.nan, "95%": None}  # NumPy: inf - inf
    half, ess = n_draw // 2, ("ess_bulk", "ess_tail", "mcse_mean")
    for name in draws:
        if half < 3:
            differs[name].update({column: math.nan for column in ess})
        elif half < 6 or half % 2 and name in ("slow", "shifted", "widening", "stuck"):
            # Geyer's sequence gets to its end, which is not the same for odd halves.
            differs[name].update({column: None for column in ess})
        if n_chain == 1:
            differs[name]["r_hat"] = None
    if n_chain == 1:
        differs["stuck"] = constant
    return draws, differs


def expected(idata):
    """Rows of the table as ArviZ computes them."""
    quantiles = {
        name: lambda x, q=q: np.quantile(x, q / 100) for name, q in PERCENT.items()
    }
    table = az.summary(idata, round_to="none", stat_funcs=quantiles)
    return {name.replace(", ", ","): dict(row) for name, row in table.iterrows()}


def emass(*arguments, ranks=1):
    command = [EMASS, "summary", *arguments]
    if ranks > 1:
        command = ["mpirun", "--oversubscribe", "-n", str(ranks), *command]
    return lib.limited(*command)


def summary(path, *options, ranks=1):
    run = emass(path, "--csv", *options, ranks=ranks)
    if run.returncode:
        sys.stderr.write(run.stderr)
        return {}
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    return {row.pop("name"): {k: float(v) for k, v in row.items()} for row in rows}


def same(x, y, scale):
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or math.isinf(y):
        return x == y or (math.isnan(x) and math.isnan(y))
    return abs(x - y) <= 1e-8 * abs(y) + 1e-13 * scale


def differences(found, wanted, differs):
    """What does not agree. A mean or a quantile near 0 is as exact as the draws are large."""
    yield from sorted(set(found) ^ set(wanted))
    for name in set(found) & set(wanted):
        if list(found[name]) != lib.SUMMARY_COLUMNS:
            yield f"{name}: columns {list(found[name])}"
            continue
        for column in lib.SUMMARY_COLUMNS:
            want = differs[name.split("[")[0]].get(column, wanted[name][column])
            location = column in PERCENT or column == "mean"
            scale = wanted[name]["sd"] if location and math.isfinite(wanted[name]["sd"]) else 0
            if want is not None and not same(found[name][column], want, scale):
                yield f"{name} {column}: {found[name][column]!r}, not {want!r}"


def check_numbers(folder):
    shapes = [(4, 1000), (8, 250), (3, 101), (1, 200), (2, 13), (2, 9), (2, 7), (2, 5), (2, 4)]
    for n_chain, n_draw in shapes:
        for seed in (1, 2, 3) if n_draw == 1000 else (1,):
            path = os.path.join(folder, f"{n_chain}x{n_draw}-{seed}.h5")
            draws, differs = posterior(seed, n_chain, n_draw)
            idata = az.from_dict(posterior=draws)
            idata.to_netcdf(path)
            wrong = list(differences(summary(path), expected(idata), differs))
            report(not wrong, f"{n_chain} chains x {n_draw} draws, seed {seed}", *wrong)
    for ranks in (2, 3, 4):
        one, many = emass(path, "--csv"), emass(path, "--csv", ranks=ranks)
        fine = one.stdout and one.stdout == many.stdout
        report(fine, f"the same on {ranks} ranks", *many.stderr.splitlines())


def check_options(folder):
    path = os.path.join(folder, "4x1000-1.h5")
    rows = summary(path, "--var", "i*", "--var", "vector[1,2]", "--percentiles", "2.5,50")
    report(sorted(rows) == ["iid", "infinite", "vector[1,2]"], "--var takes globs and elements")
    report([c for c in rows["iid"] if "%" in c] == ["2.5%", "50%"], "--percentiles names the columns")
    r_hat = [row["r_hat"] for row in summary(path, "--sort", "r_hat").values()]
    report(math.isnan(r_hat[0]) and r_hat[2:] == sorted(r_hat[2:], reverse=True),
           "--sort r_hat: undefined first, then the highest")
    rows, draws = summary(path, "--ess", "--sort", "ess_square"), posterior(1, 4, 1000)[0]
    for name in ("iid", "slow", "antithetic"):
        want = float(az.ess((draws[name] - draws[name].mean()) ** 2))
        report(same(rows[name]["ess_square"], want, 0), f"--ess: of the squares of {name}", f"{rows[name]} {want}")
    report(list(rows["iid"])[-4:] == ["ess_bulk", "ess_square", "ess_tail", "r_hat"], "beside bulk and tail")
    ess = [row["ess_tail"] for row in summary(path, "--sort", "ess_tail").values()]
    report(ess[3:] == sorted(ess[3:]), "--sort ess_tail: the lowest first")
    for wrong in (["--sort", "x"], ["--var", "x"], ["--percentiles", "5,x"], ["--group", "x"],
                  ["--percentiles", "101"], ["--nope"], [path]):
        run = emass(path, *wrong)
        fine = run.returncode == 2 and not run.stdout and len(run.stderr.splitlines()) == 1
        report(fine, f"refused: {' '.join(wrong) if wrong != [path] else 'two files'}", run.stderr)


def check_sentences(folder):
    rng = np.random.default_rng(7)
    good = rng.normal(size=(4, 1000))
    titles = {
        "Divergences: 3 of 4000": {"diverging": np.arange(4000).reshape(4, 1000) < 3},
        "Saturated tree depth: 1 of 4000": {
            "reached_max_treedepth": np.arange(4000).reshape(4, 1000) < 1},
        "E-BFMI below 0.3: 4 of 4": {"energy": np.cumsum(good, axis=1)},
        "R-hat above 1.01: 1 of 1": good + np.arange(4)[:, None],
        "ESS below 400: 1 of 1": autoregressive(good, 0.99),
        "Not finite: draws in 1 of 1 rows (1 of x)": place(good, math.inf),
        "Undefined (nan): R-hat or ESS of 1 of 1": np.zeros((4, 1000)),
    }
    calm = {"diverging": np.zeros((4, 1000), bool), "energy": good,
            "reached_max_treedepth": np.zeros((4, 1000), bool)}
    path = os.path.join(folder, "sentence.h5")
    az.from_dict(posterior={"x": good}, sample_stats=calm).to_netcdf(path)
    silent = emass(path).stdout.splitlines()
    report(len(silent) == 4 and silent[3].startswith("converged: "), "nothing to say of good draws but the verdict", *silent)
    for title, case in titles.items():
        stats = calm | case if isinstance(case, dict) else calm
        draws = good if isinstance(case, dict) else case
        az.from_dict(posterior={"x": draws}, sample_stats=stats).to_netcdf(path)
        text = emass(path).stdout
        report(any(line.startswith(title) for line in text.splitlines()), title, text)


def observations(seed, n_chain, n_draw):
    """Log likelihoods with tails of all kinds, and what has none or is not finite; a posterior."""
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=(n_chain, n_draw))
    fine = {"normal": -(0.3 - mu) ** 2 / 2, "far": -(6 - mu) ** 2, "exponential": -rng.exponential(0.5, mu.shape),
            "ties": -np.round(2 * np.abs(mu)), "tiny": -1e-4 * np.abs(mu), "huge": -1e4 * mu**2,
            "cauchy": rng.standard_cauchy(mu.shape)}
    rest = {"constant": np.full(mu.shape, -1.5), "nan": place(mu, math.nan), "infinite": place(mu, -math.inf)}
    return fine, rest, {"mu": mu, "tau": autoregressive(rng.normal(size=mu.shape), 0.7)}


def write_observations(path, observed, posterior):
    values = np.stack(list(observed.values()), -1)
    az.from_dict(posterior=posterior, log_likelihood={"y": values}, coords={"at": list(observed)},
                 dims={"y": ["at"]}).to_netcdf(path)


def leave_out(*paths):
    run = lib.limited(EMASS, "loo", *paths, "--csv")
    rows = {row.pop("name"): {k: float(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(run.stdout))}
    return rows, run.stderr


def is_theirs(rows, said, data):
    """Observation by observation, and what it all comes to."""
    theirs = az.loo(data, pointwise=True)
    ours = {column: np.array([row[column] for row in rows.values()]) for column in ("elpd_loo", "p_loo", "k")}
    yield np.allclose(ours["elpd_loo"], theirs.loo_i.values, rtol=1e-8, atol=1e-12)
    yield math.isclose(ours["p_loo"].sum(), theirs.p_loo, rel_tol=1e-8)
    yield np.allclose(ours["k"], theirs.pareto_k.values, rtol=1e-8, atol=1e-10)
    yield f"elpd_loo {theirs.elpd_loo:.2f} (standard error {theirs.se:.2f}), p_loo {theirs.p_loo:.2f}" in said
    high = (theirs.pareto_k.values > theirs.good_k).sum()
    yield not high or theirs.n_samples <= 20 or f"k: above {theirs.good_k:.2f} for {high} of" in " ".join(said.split())


def check_comparison(folder):
    """Three models of one response, the best in the middle, as ArviZ's compare has them; and what is refused."""
    rng = np.random.default_rng(5)
    y, means = rng.normal(size=30), [0.9, 0.1, 0.4]
    files = {}
    for i, mean in enumerate(means):
        mu = mean + 0.2 * rng.normal(size=(4, 500))
        log_likelihood = -((y - mu[..., None]) ** 2) / 2 - math.log(2 * math.pi) / 2
        files[os.path.join(folder, f"model{i}.nc")] = az.from_dict(
            posterior={"mu": mu}, log_likelihood={"y": log_likelihood}, observed_data={"y": y})
    for path, data in files.items():
        data.to_netcdf(path)
    theirs = az.compare(files, ic="loo")
    run = lib.limited(EMASS, "loo", *files, "--csv")
    ours = list(csv.DictReader(io.StringIO(run.stdout)))
    wrong = [(row["name"], column, row[mine], theirs.loc[row["name"], column]) for row in ours
             for mine, column, sign in (("elpd_loo", "elpd_loo", 1), ("se", "se", 1), ("p_loo", "p_loo", 1),
                                        ("elpd_diff", "elpd_diff", -1), ("diff_se", "dse", 1))
             if not math.isclose(float(row[mine]), sign * theirs.loc[row["name"], column], rel_tol=1e-8, abs_tol=1e-10)]
    report([row["name"] for row in ours] == list(theirs.index) and ours[0]["name"].endswith("model1.nc") and not wrong,
           "loo of several files: the table of ArviZ's compare", wrong, run.stderr, run.stdout)
    said = " ".join(lib.limited(EMASS, "loo", *files).stdout.split())
    report(said.count("elpd_loo") >= 4 and all(f"{path}:" in said for path in files)
           and ("cannot be told apart" in said or f"{ours[0]['name']} predicts best." in said), "each of them, and what it comes to", said)
    other = os.path.join(folder, "other.nc")
    for what, response, n in (("other values of observed_data/y", y + 1, 30), ("found 29 observations, expected 30", y[:29], 29)):
        data = next(iter(files.values()))
        az.from_dict(posterior={"mu": data.posterior.mu.values}, observed_data={"y": response},
                     log_likelihood={"y": data.log_likelihood.y.values[..., :n]}).to_netcdf(other)
        run = lib.limited(EMASS, "loo", list(files)[0], other)
        report(run.returncode == 2 and what in run.stderr and len(run.stderr.splitlines()) == 1, f"loo: {what}", run.stderr)


def check_leaving_out(folder):
    paths = [os.path.join(folder, f"loo{seed}.nc") for seed in range(3)]
    for path, shape in zip(paths, [(4, 500), (1, 300), (2, 8)]):
        fine, rest, posterior = observations(len(path) + shape[1], *shape)
        write_observations(path, fine, posterior)
        rows, said = leave_out(path)
        wrong = [i for i, right in enumerate(is_theirs(rows, said, az.from_netcdf(path))) if not right]
        report(not wrong and list(rows) == [f"y[{name}]" for name in fine], f"loo of {shape[0]} chains x {shape[1]} draws", wrong, said)
    report("Too few draws: " in said, "loo: so few draws say that they are")
    part = [os.path.join(folder, f"part{i}.nc") for i in (0, 1)]
    whole = az.from_netcdf(paths[0])
    for i, name in enumerate(part):
        whole.sel(chain=[2 * i, 2 * i + 1]).to_netcdf(name)
    report(leave_out(*part, "--together") == leave_out(paths[0]), "loo of two files' chains together")
    check_comparison(folder)

    write_observations(paths[1], fine | rest, posterior)
    few = leave_out(paths[1])[0]
    fine, rest, posterior = observations(1, 4, 500)
    write_observations(paths[1], fine | rest, posterior)
    rows, said = leave_out(paths[1])
    report(rows["y[constant]"] == {"elpd_loo": -1.5, "p_loo": 0, "k": -math.inf} and few["y[constant]"]["k"] == math.inf,
           "loo: of weights without a tail k is as small as can be, unless there are too few to tell", rows["y[constant]"])
    report(all(math.isnan(v) for name in ("nan", "infinite") for v in rows[f"y[{name}]"].values())
           and "of 2 of the observations" in said and "elpd_loo nan" in said, "loo: what is not finite is counted, and said", said)
    table = lib.limited(EMASS, "loo", paths[1]).stdout
    report("y[nan]" in table and "y[huge]" in table and "y[ties]" not in table, "loo: observations that cannot be relied on are listed", table)

    az.from_dict(posterior=posterior, log_likelihood={"y": fine["far"], "z": fine["ties"]}).to_netcdf(paths[2])
    chosen = lib.limited(EMASS, "loo", paths[2], "--var", "z")
    report(chosen.returncode == 0 and "z" in chosen.stdout, "loo: one of two variables", chosen.stderr)
    for what, *words in (("y, z, expected one of them: --var y", paths[2]), ("no such variable", paths[2], "--var", "x"),
                         ("no group log_likelihood", os.path.join(folder, "sentence.h5"))):
        run = lib.limited(EMASS, "loo", *words)
        report(run.returncode == 2 and what in run.stderr and len(run.stderr.splitlines()) == 1, f"loo: {what}", run.stderr)


with tempfile.TemporaryDirectory(prefix="emass-golden-") as work:
    check_numbers(work)
    check_options(work)
    check_sentences(work)
    check_leaving_out(work)
lib.finish()
