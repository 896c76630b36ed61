#!/usr/bin/env python3
"""Nested R-hat (Margossian et al. 2024) of runs with run.superchains, and of any file that says how
many there are: equal to 1e-8 to its definition in numpy, which is R posterior's rhat_nested, on
draws good and bad; in the stop rule and the verdict.  TAP; $1: the build."""
import csv
import io
import os
import tempfile

import lib
from lib import report

lib.needs_packages("nested R-hat")

import h5py
import numpy as np

ENVIRONMENT = dict(os.environ, SOURCE_DATE_EPOCH="0")


def emass(*command, ranks=1):
    launcher = ["mpirun", "-n", ranks] if ranks > 1 else []
    return lib.limited(*launcher, lib.EMASS, *command, env=ENVIRONMENT)


def nested(x, n_superchain):
    """x [chain][draw], the chains of a superchain one after the other."""
    n_chain, n_draw = x.shape
    if n_superchain < 2 or not np.isfinite(x).all() or (x == x.flat[0]).all():
        return np.nan
    y = x.astype(np.longdouble).reshape(n_superchain, n_chain // n_superchain, n_draw)
    means = y.mean(2)
    between_chains = means.var(1, ddof=1) if y.shape[1] > 1 else 0
    within_chains = y.var(2, ddof=1).mean(1) if n_draw > 1 else 0
    with np.errstate(all="ignore"):
        return float(np.sqrt(1 + means.mean(1).var(ddof=1) / np.mean(within_chains + between_chains)))


def summary(path, ranks=1):
    done = emass("summary", path, "--csv", ranks=ranks)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return {next(iter(row.values())): float(row["r_hat_nested"]) for row in rows if "r_hat_nested" in row}, done


def write(path, variables, n_superchain):
    """A file in ArviZ's schema, by h5py."""
    with h5py.File(path, "w") as file:
        file.attrs["superchains"] = n_superchain
        group = file.create_group("posterior")
        shape = next(iter(variables.values())).shape
        for name, n in zip(("chain", "draw"), shape):
            group[name] = np.arange(n)
            group[name].make_scale(name)
        for name, x in variables.items():
            group[name] = x
            group[name].dims[0].attach_scale(group["chain"])
            group[name].dims[1].attach_scale(group["draw"])


def adversarial(n_chain, n_draw, n_superchain):
    random = np.random.default_rng(n_chain * n_draw + n_superchain)
    normal = random.normal(size=(n_chain, n_draw))
    shifts = np.repeat(random.normal(size=n_superchain), n_chain // n_superchain)[:, None]
    stuck = normal.copy()
    stuck[0] = 3
    nan, inf = normal.copy(), normal.copy()
    nan[-1, -1], inf[0, 0] = np.nan, -np.inf
    return {"normal": normal, "apart": normal + shifts, "far": 1e9 + normal, "farther": 1e12 + normal, "even": 1e8 + 1e-4 * normal, "tiny": 1e-150 * normal, "stuck": stuck,
            "tinier": 1e-290 * normal, "near": shifts + 1e-12 * normal, "huge": 1e200 * normal,
            "still": np.repeat(normal[:, :1], n_draw, 1), "starts": np.repeat(shifts, n_draw, 1), "nan": nan, "inf": inf,
            "constant": np.full((n_chain, n_draw), 0.1), "counts": random.poisson(0.3, (n_chain, n_draw)).astype(float)}


def same(a, b):
    return (np.isnan(a) and np.isnan(b)) or a == b or abs(a / b - 1) < 1e-8


def draws():
    for n_chain, n_draw, n_superchain in (64, 50, 8), (6, 1, 3), (6, 7, 2), (5, 20, 5), (1000, 3, 4):
        variables = adversarial(n_chain, n_draw, n_superchain)
        write("draws.h5", variables, n_superchain)
        found, done = summary("draws.h5")
        expected = {name: nested(x, n_superchain) for name, x in variables.items()}
        wrong = [(name, found.get(name), value) for name, value in expected.items() if not same(found.get(name, -1), value)]
        report(done.returncode == 0 and not wrong, f"{n_superchain} superchains, {n_chain} chains of {n_draw} draws", wrong, done.stderr)
    write("draws.h5", adversarial(6, 20, 1), 1)
    report(not summary("draws.h5")[0], "one superchain has none")
    write("draws.h5", adversarial(6, 20, 3), 4)
    report(not summary("draws.h5")[0], "nor have superchains that do not divide the chains")


def config(more):
    with open("run.yaml", "w") as file:
        print(f"model: {{name: eight_schools}}\nrun: {{chains: 64, draws: 60, seed: 2, superchains: 8}}\n{more}", file=file)


def runs():
    config("")
    contents = set()
    for ranks in 1, 3:
        done = emass("run", "run.yaml", "--quiet", "--overwrite", "--output", f"{ranks}.h5", ranks=ranks)
        contents.add(open(f"{ranks}.h5", "rb").read() if done.returncode == 0 else done.stderr)
    report(len(contents) == 1, "64 chains of 60 draws: the same bytes on 1 and 3 ranks")
    with h5py.File("1.h5") as file:
        expected = max(nested(file["posterior"][name][:].reshape(64, 60, -1)[:, :, k], 8)
                       for name in ("mu", "tau", "theta") for k in range(8 if name == "theta" else 1))
        verdict = file.attrs["verdict"]
        verdict = verdict.decode() if isinstance(verdict, bytes) else verdict
        report("nested R-hat" in verdict and same(file.attrs["worst_r_hat"], expected) and file.attrs["ess_limit"] == 800,
               "the verdict is about nested R-hat, and 100 for each superchain", verdict, expected)
        report(expected < 1.01 and file.attrs["smallest_ess"] > 800, "and by it these short chains can be judged", verdict)
    found, _ = summary("1.h5", ranks=2)
    report(same(max(found.values()), expected), "the summary has it too", found, expected)
    paged = emass("report", "1.h5", "--output", "1.html")
    page = lib.report_data("1.html") if paged.returncode == 0 else {}
    report(page and page["table"]["limited"] == page["table"]["columns"][-1] == "r_hat_nested" and page["superchains"] == 8
           and not [line for line in page["advice"] if "R-hat above" in line], "and the report, which judges by it", paged.stderr)
    config("output: {save_warmup: true}\nsampler: {name: hmc, leapfrog_steps: 1, step_size: 1e-12}\nmass: {estimator: none}")
    emass("run", "run.yaml", "--quiet", "--overwrite", "--output", "start.h5", "--set", "run.warmup=1", "--set", "run.draws=2")
    with h5py.File("start.h5") as file:
        first = file["warmup_posterior/theta"][:, 0].reshape(8, 8, 8)
        report(np.abs(first - first[:, :1]).max() < 1e-9 and len({row.tobytes() for row in first[:, 0].round(6)}) == 8,
               "the chains of a superchain start at one point, superchains at others")
    config("stop: {r_hat: 1.05, ess: 800, check_every: 20}")
    emass("run", "run.yaml", "--quiet", "--overwrite", "--output", "stop.h5", "--set", "run.draws=2000", ranks=2)
    with h5py.File("stop.h5") as file:
        n = file["posterior/mu"].shape[1]
        report(n < 2000 and file.attrs["worst_r_hat"] <= 1.05, "the stop rule goes by it", n)
    done = emass("run", "run.yaml", "--output", "bad.h5", "--set", "run.superchains=7")
    report(done.returncode == 2 and "expected a divisor of the 64 chains" in done.stderr and not os.path.exists("bad.h5"),
           "superchains of unequal numbers are refused", done.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    draws()
    runs()
lib.finish()
