#!/usr/bin/env python3
"""The rows of a summary where there are many, as on a terminal: at most so many, parameters before transformed
parameters before generated quantities, scalars before long arrays, those that mix worst among them; what says
the same in one line; numbering from 1 where the file asks for it.  TAP; $1: the build."""
import os
import re
import tempfile

import lib
from lib import report

lib.needs_packages("rows")

import h5py
import numpy as np

CHAINS, DRAWS = 4, 200


def write(path, variables):
    """A file in ArviZ's schema; variables: name -> (values, attributes)."""
    with h5py.File(path, "w", track_order=True) as file:
        group = file.create_group("posterior", track_order=True)
        for name, n in (("chain", CHAINS), ("draw", DRAWS)):
            group[name] = np.arange(n)
            group[name].make_scale(name)
        for name, (x, attributes) in variables.items():
            group[name] = x
            group[name].attrs.update(attributes)
            for axis, scale in enumerate(("chain", "draw")):
                group[name].dims[axis].attach_scale(group[scale])
            for axis in range(2, x.ndim):
                label = f"{name}_dim_{axis - 2}"
                group[label] = np.arange(x.shape[axis])
                group[label].make_scale(label)
                group[name].dims[axis].attach_scale(group[label])


def table(*words):
    """Names of the rows and what follows them, and the line below them."""
    done = lib.limited(lib.EMASS, "summary", *words)
    lines = done.stdout.splitlines()
    width = len(lines[1]) - len(lines[1].lstrip()) - len("mean") if len(lines) > 1 else 0
    end = next((i for i, line in enumerate(lines) if re.match(r"\d+ of \d+ rows|(not )?converged", line)), len(lines))
    rows = [re.match(r"(.*?)(?:  +|$)(.*)", line).groups() for line in lines[2:end]]
    return rows, "\n".join(lines[end:]), (done.returncode, done.stderr, done.stdout, width)


def check_order(folder):
    rng = np.random.default_rng(1)

    def normal(*shape):
        return rng.normal(size=(CHAINS, DRAWS, *shape))

    late, slow = normal(60), normal(60)
    late[:, :, 41] += 5 * np.arange(CHAINS)[:, None]
    slow[:, :, 57] = np.cumsum(slow[:, :, 57], axis=1)
    path = os.path.join(folder, "order.h5")
    write(path, {"generated": (normal(), {"role": "generated quantity", "index_base": 1}),
                 "transformed": (normal(2), {"role": "transformed parameter", "index_base": 1}),
                 "beta": (late, {"index_base": 1}), "gamma": (slow, {"index_base": 1}), "alpha": (normal(), {}),
                 "sigma": (normal(2, 2), {"index_base": 1})})
    rows, below, why = table(path, "--rows", "40")
    names = [name.removesuffix(" *") for name, _ in rows]
    marked = [name.removesuffix(" *") for name, _ in rows if name.endswith(" *")]
    report(len(rows) == 40 and "40 of 128 rows" in below and "--all" in below and "--var" in below,
           "at most so many rows, and how to see all", *why)
    report(names[:5] == ["alpha", "sigma[1,1]", "sigma[1,2]", "sigma[2,1]", "sigma[2,2]"] and names[5] == "beta[1]",
           "scalars and short arrays first, numbered from 1", names)
    report(set(marked) >= {"beta[42]", "gamma[58]"} and 5 <= len(marked) <= 10, "those that mix worst are there, marked", marked)
    rows, below, why = table(path, "--rows", "128")
    names = [name for name, _ in rows]
    report(names[-3:] == ["transformed[1]", "transformed[2]", "generated"] and "rows;" not in below and " *" not in "".join(names),
           "parameters, transformed parameters, generated quantities; nothing is marked where all are shown", names)
    rows, _, why = table(path, "--rows", "3", "--sort", "r_hat")
    report([name for name, _ in rows][0].startswith("beta[42]"), "an order that is asked for is kept", *why)
    said = lib.limited(lib.EMASS, "summary", path, "--sort", "none").stderr
    report(all(name in said for name in lib.SUMMARY_COLUMNS if "%" not in name) and "ess_square with --ess" in said,
           "an order by no column is refused with the names of the columns", said)
    everything = [name for name, _ in table(path)[0]]
    report(len(everything) == 128 and everything[0] == "generated" and everything == [name for name, _ in table(path, "--all")[0]],
           "a pipe gets all, as they are stored", everything)
    rows, _, why = table(path, "--var", "beta[42]", "--var", "sigma*")
    report([name for name, _ in rows] == ["beta[42]", "sigma[1,1]", "sigma[1,2]", "sigma[2,1]", "sigma[2,2]"],
           "elements are chosen by the names that are shown", *why)
    csv = lib.limited(lib.EMASS, "summary", path, "--csv", "--rows", "3").stdout.splitlines()
    report(len(csv) == 129 and csv[0] == ",".join(["name", *lib.SUMMARY_COLUMNS]),
           "--csv has all rows, and the columns it had", *csv[:3])


def check_same(folder):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(CHAINS, DRAWS))
    corr = np.zeros((CHAINS, DRAWS, 3, 3))
    corr[:] = np.eye(3)
    corr[:, :, 1, 0] = corr[:, :, 0, 1] = np.tanh(x)
    path = os.path.join(folder, "same.h5")
    write(path, {"p": (np.repeat(x[:, :, None], 300, 2), {"index_base": 1}), "omega": (rng.normal(size=(CHAINS, DRAWS)), {}),
                 "corr": (corr, {"index_base": 1}), "three": (np.full((CHAINS, DRAWS), 3), {})})
    rows, below, why = table(path, "--rows", "40")
    told = dict(rows)
    report([name for name, _ in rows] == ["omega", "corr[1,1] and 2 more", "corr[1,2]", "corr[1,3] and 3 more", "corr[2,1]", "three",
                                          "p[1]", "p[2] to p[300]"] and "rows;" not in below, "what says the same is one line", *why)
    report(told["p[2] to p[300]"] == "as p[1]" and told["corr[2,1]"] == "as corr[1,2]" and told["three"] == "constant 3"
           and told["corr[1,1] and 2 more"] == "constant 1" and told["corr[1,3] and 3 more"] == "constant 0", "and says so", *why)
    report("Undefined" not in below and below.startswith("converged: "), "constants are no fault of the draws", below)
    made = lib.limited(lib.EMASS, "report", path, "--output", os.path.join(folder, "same.html"))
    shown = lib.report_data(os.path.join(folder, "same.html"))["table"]["rows"] if made.returncode == 0 else []
    report(made.returncode == 0 and [row[0] for row in shown] == [name for name, _ in rows]
           and ["p[2] to p[300]", "as p[1]"] in shown, "the report has the same lines", made.stderr, shown)


with tempfile.TemporaryDirectory(prefix="emass-rows-") as work:
    check_order(work)
    check_same(work)
lib.finish()
