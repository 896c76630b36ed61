#!/usr/bin/env python3
"""emass summary against ArviZ: every column to 1e-8, on any number of ranks. TAP; $1: the build."""
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
COLUMNS = ["mean", "mcse_mean", "sd", *PERCENT, "ess_bulk", "ess_tail", "r_hat"]


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
    """Draws by name, and where emass follows posterior rather than ArviZ (src/diag/diag.h): the
    value expected, or None to leave a column to tests/unit/test_diag.c."""
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
        if list(found[name]) != COLUMNS:
            yield f"{name}: columns {list(found[name])}"
            continue
        for column in COLUMNS:
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
    report(list(rows["iid"])[3:5] == ["2.5%", "50%"], "--percentiles names the columns")
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
    report(len(silent) == 3, "nothing to say of good draws", *silent)
    for title, case in titles.items():
        stats = calm | case if isinstance(case, dict) else calm
        draws = good if isinstance(case, dict) else case
        az.from_dict(posterior={"x": draws}, sample_stats=stats).to_netcdf(path)
        text = emass(path).stdout
        report(any(line.startswith(title) for line in text.splitlines()), title, text)


with tempfile.TemporaryDirectory(prefix="emass-golden-") as work:
    check_numbers(work)
    check_options(work)
    check_sentences(work)
lib.finish()
