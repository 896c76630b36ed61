#!/usr/bin/env python3
"""Functions of numba, frames of polars, ranks that the package starts, communicators of mpi4py. TAP; $1: the build."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import lib
from lib import report, said

lib.needs_front_ends("functions of numba, and ranks of Python")
lib.use_package()

import numba  # noqa: E402
import numpy as np  # noqa: E402
import pandas  # noqa: E402
import polars  # noqa: E402

import emass  # noqa: E402

QUIET = {"chains": 4, "draws": 100, "progress": False}
CENTRES = np.array([1.0, 2.0, 4.0])


@numba.njit
def density(mu, tau, theta):
    return -(mu**2) / 2 - tau - np.sum((theta - mu) ** 2) / 2


@numba.njit
def gradient(mu, tau, theta):
    return -mu + np.sum(theta - mu), -1.0, mu - theta


@numba.njit
def both(x):
    return -np.sum(x**2) / 2, -x


@numba.njit
def fails(x):
    if x[0] > 0.5:
        raise ValueError("no value there")
    return -np.sum(x**2) / 2, -x


SHAPES = {"mu": (), "tau": (), "theta": (2, 2)}


def check_numba():
    model = emass.Model.from_function(density, shapes=SHAPES, gradient=gradient, bounds={"tau": (0, None)})
    model.check()
    draws = model.sample(**QUIET)
    plain = emass.Model.from_function(density.py_func, shapes=SHAPES, gradient=gradient.py_func, bounds={"tau": (0, None)})
    other = plain.sample(**QUIET)
    report(np.allclose(draws.posterior.theta[:, :5], other.posterior.theta[:, :5], rtol=1e-6), "numba and Python: the same draws at first")
    report(draws.posterior.theta.shape == (4, 100, 2, 2) and float(draws.posterior.tau.min()) > 0, "shapes and bounds")
    once = emass.Model.from_function(both, dim=3, gradient=True)
    report("agree" in once.check() and once.sample(**QUIET).posterior.theta.shape == (4, 100, 3), "value and gradient at once")
    valued = emass.Model.from_function(density, shapes=SHAPES, bounds={"tau": (0, None)})
    report(valued.sample(**QUIET).posterior.mu.shape == (4, 100), "no gradient")
    draws = emass.Model.from_function(fails, dim=2, gradient=True).sample(**QUIET)
    report(float(draws.posterior.theta[..., 0].max()) <= 0.5, "an exception in numba is a rejection")
    wrong = emass.Model.from_function(numba.njit(lambda x: x.nothing), dim=2, gradient=True)
    report("numba cannot compile" in said(wrong.check), "what numba cannot compile")
    for name in ("chain", "draw"):
        text = said(emass.Model.from_function(lambda x: -float(x) ** 2, names=[name]).check)
        report(f"found {name}, the name of a coordinate of the draws" in text, f"a parameter that is called {name}", text)
    short = emass.Model.from_function(lambda x: -x @ x / 2, dim=3, gradient=lambda x: -1.0)
    text = said(short.check)
    report("the gradient has 1 numbers, expected 3" in text and "\n" not in text, "a gradient of another length", text)


def moves(x):
    value = -x @ x / 2
    x *= -1
    return value, x


def check_answers():
    """Functions that change their argument, and what they must not return."""
    kept = emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=2, gradient=True).sample(**QUIET).posterior.theta.values
    jitted = emass.Model.from_function(numba.njit(moves), dim=2, gradient=True).sample(**QUIET).posterior.theta.values
    moved = emass.Model.from_function(moves, dim=2, gradient=True).sample(**QUIET).posterior.theta.values
    report(np.array_equal(moved, kept), "a function of Python may change its argument")
    report(np.allclose(jitted[:, 0], kept[:, 0]), "a function of numba may change its argument")

    def by_name(second):
        return lambda mu, theta: (-(mu**2) / 2 - 2 * theta @ theta, {"theta": -4 * theta, second: -mu})

    sizes = {"mu": (), "theta": (2,)}
    text = emass.Model.from_function(by_name("mu"), shapes=sizes, gradient=True).check()
    report("agree" in text, "a gradient by names, in another order", text)
    text = said(emass.Model.from_function(by_name("m"), shapes=sizes, gradient=True).check)
    report(text.endswith("the gradient: found the names theta, m, expected mu, theta"), "an unknown name in a gradient", text)
    for names, words in ((["a", "b", "a"], "'a' again"), ("ab", "the text 'ab'")):
        text = said(lambda names=names: emass.Model.from_function(lambda *x: -sum(one * one for one in x), names=names))
        report(f"names: found {words}, expected" in text, f"names: {words}", text)
    for found, words in (
        (np.complex128(-1), "complex128"),
        (np.zeros(1), "an array of the shape (1,)"),
        ("-1", "str"),
        (None, "no value"),
        (True, "bool"),
        (np.True_, "bool"),
    ):
        text = said(emass.Model.from_function(lambda x, found=found: found, dim=2).check)
        report(text.endswith(f"TypeError: the log density: found {words}, expected one real number"), f"{words} as a density", text)
    for name, function in (("value", lambda x: x[0] > 0), ("value and gradient", lambda x: (x[0] > 0, -x))):
        text = said(emass.Model.from_function(numba.njit(function), dim=2, gradient=name != "value" or None).check)
        report(text.endswith("the log density: found bool, expected one real number"), f"a truth value of numba: {name}", text)
    text = said(emass.Model.from_function(lambda x: (-x @ x / 2, -x + 0j), dim=2, gradient=True).check)
    report(text.endswith("the gradient: found complex numbers, expected real ones"), "a complex gradient", text)


def check_ranks():
    centres = CENTRES
    model = emass.Model.from_function(lambda x: (-((x - centres) ** 2).sum() / 2, centres - x), dim=3, gradient=True)
    one = model.sample(**QUIET)
    for ranks in (2, 4):
        report(np.array_equal(model.sample(**QUIET, ranks=ranks).posterior.theta, one.posterior.theta), f"{ranks} ranks: the same draws")
    text = said(lambda: emass.Model.from_function(lambda x: 1 / 0, dim=1, gradient=True).sample(**QUIET, ranks=2))
    report("ZeroDivisionError" in text and "\n" not in text, "an error of a rank is one line", text)
    lock = threading.Lock()
    text = said(lambda: emass.Model.from_function(lambda x: (lock, x), dim=1, gradient=True).sample(**QUIET, ranks=2))
    report("cannot be sent to other ranks" in text, "what does not travel", text)


def check_interrupt():
    """Once a rank has said that it draws, an interrupt of the first process stops them all."""
    def slow(x):
        time.sleep(0.001)
        return -x @ x / 2, -x

    def fast(x):
        return -x @ x / 2, -x

    def interrupt():
        while not os.path.exists("far.h5"):
            time.sleep(0.1)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    asked = {"chains": 2, "draws": 3000, "warmup": 100, "seed": 3, "progress": False}
    text = said(lambda: emass.Model.from_function(slow, dim=2, gradient=True).sample(**asked, ranks=2, output="far.h5"), emass.Stopped)
    report("emass.resume" in text and os.path.exists("far.h5.checkpoint"), "an interrupt of ranks leaves a checkpoint", text)
    model = emass.Model.from_function(fast, dim=2, gradient=True)
    other = emass.Model.from_function(lambda x: (-x @ x, -2 * x), dim=2, gradient=True)
    text = said(lambda: emass.resume("far.h5", other, ranks=2, progress=False))
    report("far.h5: found a model whose log density has other values than that of the run" in text, "not another function", text)
    again = emass.resume("far.h5", model, ranks=2, progress=False)
    report(np.array_equal(again.posterior.theta, model.sample(**asked).posterior.theta), "and goes on to the same draws")


def check_polars():
    frame = polars.DataFrame({"x": [0.0, 1, 2, 3, 4], "b": [True, False, True, True, False], "y": [0.0, 2, 4, 6.5, 8]})
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    draws = [emass.Model.linear("y ~ x + b", given).sample(**QUIET).posterior.beta for given in (frame, pandas.DataFrame(columns), columns)]
    report(np.array_equal(draws[0], draws[1]) and np.array_equal(draws[0], draws[2]), "polars, pandas and columns: the same draws")
    days = frame.with_columns(when=polars.date_range(polars.date(2020, 1, 1), polars.date(2020, 1, 5)), since=polars.Series([0, 1, 2, 3, 4]).cast(polars.Duration("us")))
    texts = [said(lambda one=one: emass.Model.linear(f"y ~ b + {one}", days).check()) for one in ("when", "since")]
    texts += [said(lambda: emass.Model.linear("y ~ x", frame.with_columns(polars.Series("l", [[1]] * 5))))]
    names = emass.Model.linear("y ~ x + b", days.lazy()).sample(**QUIET).posterior.coefficient.values
    report(all("expected a number, such as that of days" in text for text in texts[:2]) and texts[2] == "data: found List(Int64) in column 'l', expected numbers or texts" and list(names) == ["intercept", "x", "b[True]"], "truth values and dates of polars", texts, names)
    codes = frame.with_columns(polars.Series("code", ["10", "9", "9", "10", "9"], dtype=polars.Categorical))
    terms = list(emass.Model.linear("y ~ code", codes).sample(**QUIET).posterior.coefficient.values)
    report(terms == ["intercept", "code[9]"], "categories that look like numbers", terms)
    stan = emass.Model.from_stan("data { vector[5] y; } parameters { real m; } model { y ~ normal(m, 1); }", {"y": frame["y"]})
    report(stan.sample(**QUIET).posterior.m.shape == (4, 100), "a column of polars as data of Stan")


UNDER_MPIRUN = f"""
import hashlib, sys
sys.path.insert(0, {os.path.join(lib.ROOT, 'analysis')!r})
from mpi4py import MPI
import emass
half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank // 2)
draws = emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=3, gradient=True).sample(chains=4, draws=60, progress=False, comm=half)
print(half.size, hashlib.md5(draws.posterior.theta.values.tobytes()).hexdigest())
"""


def check_mpi4py():
    alone = emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=3, gradient=True).sample(chains=4, draws=60, progress=False)
    import hashlib

    expected = f"2 {hashlib.md5(alone.posterior.theta.values.tobytes()).hexdigest()}\n" * 4
    ran = subprocess.run(["mpirun", "-n", "4", sys.executable, "-c", UNDER_MPIRUN], capture_output=True, text=True)
    words = sorted(ran.stdout.split())  # lines of ranks may be mixed
    report(words == sorted(expected.split()), "halves of a communicator of mpi4py", ran.stdout, ran.stderr)


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check_numba()
    check_answers()
    check_ranks()
    check_interrupt()
    check_polars()
    check_mpi4py()
lib.finish()
