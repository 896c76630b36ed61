#!/usr/bin/env python3
"""Tempered runs of models of PyMC and JAX, of functions and of regressions of a frame that are killed and signalled in the
middle, in one process and in two ranks: emass.resume leads to the file of a run that was not. TAP; $1: the build."""
import contextlib
import functools
import glob
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import lib
from lib import report

lib.needs_front_ends("killed runs of scripts of Python")
lib.use_package()

import numpy as np  # noqa: E402

import emass  # noqa: E402

RANDOM = random.Random(1)
OPTIONS = {"chains": 2, "warmup": 40, "seed": 5, "temper": {"rungs": 3}, "progress": False,
           "settings": {"output.checkpoint_every": "0.1s"}}
ENDLESS = 10**6  # draws of a run that cannot end before a signal comes
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT]


@functools.cache  # so that the processes have what this one has compiled
def of_pymc():
    import pymc as pm

    with pm.Model() as two_modes:
        place, _ = pm.Flat("place"), pm.HalfNormal("scale")
        pm.Potential("modes", pm.math.logaddexp(-(place - 4) ** 2 / 2, -(place + 4) ** 2 / 2))
    return emass.Model.from_pymc(two_modes)


def of_jax():
    import jax.numpy as jnp

    return emass.Model.from_jax(lambda p: jnp.logaddexp(-jnp.sum((p["x"] - 3) ** 2) / 2, -jnp.sum((p["x"] + 3) ** 2) / 2),
                                {"x": np.zeros(2)})


def of_function():
    """Without a gradient; one evaluation in fifty fails."""
    def log_density(x):
        if int(1000 * abs(x[0])) % 50 == 7:
            raise ValueError("no convergence")
        return np.logaddexp(-((x - 3) ** 2).sum() / 2, -((x + 3) ** 2).sum() / 2)
    return emass.Model.from_function(log_density, dim=2)


def of_frame():
    """A regression, which goes on from its file alone."""
    import pandas as pd

    random = np.random.default_rng(2)
    frame = pd.DataFrame({"x": random.normal(size=30), "site": list("abc") * 10})
    return emass.Model.linear("y ~ x + site", frame.assign(y=frame.x + random.normal(size=30)))


def run(make, file, draws, ranks):
    """Begins the run or goes on with it. Status 0: done; 75: stopped, with a checkpoint; 1: a rank was lost."""
    model = make()
    try:
        if os.path.exists(file):
            emass.resume(file, None if make is of_frame else model, draws=draws, progress=False, ranks=ranks)
        else:
            model.sample(output=file, draws=draws, ranks=ranks, **OPTIONS)
        return 0
    except emass.Error as error:
        return error.status


def start(*what):
    """The same in a process of its own."""
    if (child := os.fork()) == 0:
        status = 1
        try:
            sys.stderr = open(os.devnull, "w")
            status = run(*what)
        except BaseException as error:
            print("#", repr(error), flush=True)
        finally:
            os._exit(status)
    return child


def end_of(child):
    """Its exit status; minus the number of a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def renewed(path, before, child):
    """Waits for a checkpoint that is newer; False: the process has ended."""
    while not (os.path.exists(path) and os.stat(path).st_mtime_ns > before):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        time.sleep(0.01)
    return True


def a_few_more(name, make, file, ranks):
    """Whether the run ends well with ten draws more than it has, in the file of one that was not disturbed."""
    present = emass.read(file).posterior
    draws = 10 + int(present[list(present.data_vars)[0]].isel(chain=0).notnull().sum("draw").min())
    whole = f"{name}-{draws}.h5"
    ends = [end_of(start(make, one, draws, how)) for one, how in ((file, ranks), (whole, None))]
    same = lib.limited(lib.EMASS, "diff", whole, file)
    if make is of_frame:  # the table beside a file has its name
        alike = same.returncode == 1 and re.fullmatch(r"config model\.data: \S+\.csv \| \S+\.csv\n", same.stdout)
    else:
        alike = same.returncode == 0 and "no difference in" in same.stdout
    return ends == [0, 0] and alike, [ends, draws, same.stdout]


def check_signals(name, make):
    """Each signal comes when a process has written a checkpoint, and a moment later."""
    ends, file = [], f"{name}.h5"
    for number in SIGNALS:
        path = f"{file}.checkpoint"
        before = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
        child = start(make, file, ENDLESS, None)
        if renewed(path, before, child):
            time.sleep(RANDOM.uniform(0, 0.2))
            os.kill(child, number)
        ends.append(end_of(child))
    fine, notes = a_few_more(name, make, file, None)
    report(ends == [-9, 75, -9, 75] and fine,
           f"{name}: two kills, SIGTERM and Ctrl-C, and the file of a run that was not disturbed", ends, *notes)


def check_ranks(name, make):
    """One of two ranks is killed. The file is that of one process."""
    file = f"{name}-ranks.h5"
    child = start(make, file, ENDLESS, 2)
    ranks = renewed(f"{file}.checkpoint", 0, child) and ranks_of(child)
    for rank in ranks[1:] if ranks else []:
        os.kill(rank, signal.SIGKILL)
    end = end_of(child)
    fine, notes = a_few_more(name, make, file, 2)
    report(ranks and end > 0 and fine, f"{name}: one of two ranks is killed, and the file of one process", ranks, end, *notes)


def ranks_of(parent):
    """The processes below this one that are ranks."""
    found = []
    for path in glob.glob(f"/proc/{parent}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/cmdline", "rb") as line:
                    words = line.read().split(b"\0")
                of_program = words[0].endswith(b"/emass") and words[1] == b"run" and b"--ranks" not in words
                if words[1:3] == [b"-m", b"emass._worker"] or of_program:
                    found.append(int(child))
                found += ranks_of(child)
    return found


with tempfile.TemporaryDirectory(prefix="emass-kills-") as work:
    os.chdir(work)
    of_pymc().check()
    for name, make in (("pymc", of_pymc), ("jax", of_jax), ("function", of_function), ("frame", of_frame)):
        check_signals(name, make)
        if name != "pymc" or "EMASS_KILLS" in os.environ:  # each rank would compile for itself
            check_ranks(name, make)
lib.finish()
