#!/usr/bin/env python3
"""What the Python package says: why positions are rejected, how far a run is, what is refused, what predictions are of. TAP; $1: the build."""
import contextlib
import fcntl
import io
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import warnings

import lib
from lib import report, said

lib.needs_packages("messages of the Python package")
lib.use_package()

import arviz  # noqa: E402
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import xarray  # noqa: E402

import emass  # noqa: E402

SHORT = {"chains": 2, "draws": 60}
START = "(declare the bounds of all parameters, or give settings={'run.init_radius': ...})"
QUIET = {**SHORT, "progress": False}


def printed(call):
    """What it writes on standard error from Python."""
    with contextlib.redirect_stderr(io.StringIO()) as text:
        call()
    return text.getvalue()


def raises(x):
    return 1 / 0


def half(x):
    if x[0] > 0.5:
        raise ValueError("no value there")
    return -x @ x / 2


def bounded(x):
    return (-x @ x / 2 if x[0] > -1 else -np.inf), -x


def fails_at_random():
    random = np.random.default_rng(1)

    def density(x):
        if random.random() < 0.05:
            raise RuntimeError("the solver did not converge")
        return -x @ x / 2, -x

    return density


def check_rejections():
    """A function's own words, in the error or the note, with and without a gradient."""
    for gradient in (None, True):
        model = emass.Model.from_function(raises, dim=2, gradient=gradient)
        texts = [said(lambda: model.sample(**QUIET)), said(model.check), said(model.check)]
        report(all("ZeroDivisionError: division by zero" in text and "\n" not in text for text in texts) and
               START in texts[0], f"an exception that stops the start; gradient={gradient}", *texts)
    text = printed(lambda: emass.Model.from_function(half, dim=2).sample(**SHORT))
    report(re.search(r"emass: note: \d+ of \d+ evaluations failed \([\d.]+ %\), and were rejections; the first on this rank: ValueError: no value there \(.*:\d+\); the file lists the first of each chain \(attribute failed_evaluations\)\n", text), "without a gradient: how often, and the first reason", text)
    text = printed(lambda: emass.Model.from_function(lambda x: (half(x), -x), dim=2, gradient=True).sample(**SHORT))
    report(" evaluations failed (" in text and "ValueError: no value there" in text, "with a gradient too", text)
    text = emass.Model.from_function(lambda x: (half(x), -x), dim=2, gradient=True).check()
    found = re.search(r"the log density is not finite at (\d+) of 100 positions, first: ValueError: no value there", text)
    report(found and 10 <= int(found[1]) <= 40, "check says at how many positions", text)
    report("not finite" not in emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=2, gradient=True).check(), "and nothing where all are fine")
    text = printed(lambda: emass.Model.from_function(bounded, dim=2, gradient=True).sample(**SHORT))
    report("emass: note: the model rejected " in text and "the log density is -inf" in text, "where the density is zero", text)
    for sampler in ("hmc", "nuts"):
        draws = emass.Model.from_function(fails_at_random(), dim=3, gradient=True).sample(seed=1, sampler=sampler, **QUIET | {"draws": 2000, "warmup": 200})
        report(not draws.sample_stats["diverging"].any() and draws.attrs["n_failed_evaluations"] > 0
               and draws.attrs["verdict"].startswith("converged"), f"{sampler}: one evaluation in twenty fails", draws.attrs["verdict"])
    for value, slope, words in ((np.nan, 0.0, "the log density is nan"), (0.0, np.nan, "the gradient is not finite")):
        model = emass.Model.from_function(lambda x: (value, slope * x), dim=2, gradient=True)
        texts = [said(lambda: model.sample(**QUIET)), said(model.check)]
        report(texts[0].endswith(f"{words} {START}") and texts[1].endswith(words), f"no exception: {words}", *texts)


SLOW = "emass.Model.from_function(slow, dim=2, gradient=True).sample(chains=4, draws=800, seed=1)"
ON_RANKS = "emass.Model.built_in('eight_schools').sample(chains=4, draws=800, ranks=2)"


def in_terminal(columns, runs):
    """The lines that a run shows in a terminal of so many columns."""
    script = f"""
import sys, time; sys.path.insert(0, {os.path.join(lib.ROOT, 'analysis')!r})
import emass
def slow(x):
    time.sleep(1e-4)
    return -x @ x / 2, -x
{runs}
"""
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=".") as file:
        file.write(script)
        file.flush()
        parent, child = os.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        with subprocess.Popen([sys.executable, "-W", "ignore", file.name], stdout=subprocess.DEVNULL, stderr=child, env=environment) as run:
            os.close(child)
            text = b""
            with contextlib.suppress(OSError):  # the end of a terminal
                while part := os.read(parent, 65536):
                    text += part
            os.close(parent)
            run.wait()
    return [line for line in text.decode().replace("\n", "\r").split("\r") if re.search(r"\d+/\d+", line)]


def check_progress():
    """In a terminal: in its columns, with ESS, rate and time left as emass run has them."""
    for columns, runs in ((140, SLOW), (80, SLOW), (140, ON_RANKS)):
        lines = in_terminal(columns, runs)
        last, before = lines[-1], [line for line in lines[:-1] if "sampling" in line and "ESS" in line]
        report(all(len(line) == columns - 1 for line in lines) and "ESS" in last and "100 %" in last and
               (runs == ON_RANKS or before and all("left" in line for line in before)), f"{runs.split('(')[0]} in {columns} columns", *lines[-3:])
        report(columns == 80 or (" draws/s" in last and "█" * 24 in last), "which has room for a bar and the rate", last)


def warned(call):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in heard if one.category is UserWarning and one.filename == __file__]


def check_resume():
    """Without the model where this process has it; fewer draws than there are; names of files and arguments."""
    model = emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=2, gradient=True)
    model.sample(**QUIET, output="whole.h5")
    report(emass.resume("whole.h5", draws=80, progress=False).posterior.sizes["draw"] == 80, "a finished run, by its model in this process")
    heard = warned(lambda: emass.resume("whole.h5", draws=70, progress=False))
    heard += warned(lambda: model.sample(**{**QUIET, "draws": 50}, output="whole.h5", resume=True))
    report(len(heard) == 2 and "found 70, fewer than the 80" in heard[0] and "found 50, fewer than the 80" in heard[1], "fewer draws", *heard)
    report(not warned(lambda: emass.resume("whole.h5", draws=80, progress=False)), "as many are no warning")
    other = emass.Model.from_function(lambda x: (-x @ x, -2 * x), dim=2, gradient=True)
    text = said(lambda: emass.resume("whole.h5", other, draws=90, progress=False))
    of_complete = [said(lambda m=m: emass.resume("whole.h5", m, progress=False)) for m in (other, emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=3, gradient=True))]
    of_complete += [said(lambda: other.sample(**{**QUIET, "draws": 80}, output="whole.h5", resume=True, **ranks)) for ranks in ({}, {"ranks": 2})]
    report(text.endswith("whole.h5: found a model whose log density has other values than that of the run, expected the model that made the file") and
           all(one == text for one in of_complete), "another function: refused, also of a complete run, on ranks too", text, *of_complete)
    report(emass.resume("whole.h5", emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=2, gradient=True), progress=False).posterior.sizes["draw"] == 80,
           "the same function, made again")
    report("model.name differ" in (text := said(lambda: emass.resume("whole.h5", emass.Model.built_in("eight_schools"), progress=False))), "another kind of model", text)
    text = said(lambda: emass.resume("whole.h5", draws=90, settings={"run.seed": 7}, progress=False))
    report(text.endswith("give the old values, overwrite=True or another output"), "arguments, not options", text)
    del model, other
    text = said(lambda: emass.resume("whole.h5", draws=90, progress=False))
    report("this process has not made it" in text and "emass.resume(file, model)" in text, "a model that is gone", text)
    text = said(lambda: emass.summary(emass.read("whole.h5"), group="prior"))
    report("found no group prior" in text and "--" not in text, "no option in a message of a command", text)


def check_stopped():
    """Fewer draws than a stopped run has; another function; a regression of other data."""
    calls = []

    def density(x):
        calls.append(1)
        if len(calls) == 3000:
            os.kill(os.getpid(), signal.SIGINT)
        return -x @ x / 2, -x

    model = emass.Model.from_function(density, dim=2, gradient=True)
    said(lambda: model.sample(chains=2, draws=6000, warmup=100, progress=False, output="cut.h5"), emass.Stopped)
    text = said(lambda: emass.resume("cut.h5", draws=20, progress=False))
    report(re.search(r"cut.h5: found run.draws: 20 for a run that has (\d+) draws of each chain, expected \1 or more \(the draws", text), "fewer draws than there are", text)
    other = emass.Model.from_function(lambda x: (-x @ x, -2 * x), dim=2, gradient=True)
    text = said(lambda: emass.resume("cut.h5", other, progress=False))
    report("cut.h5: found a model whose log density has other values" in text and "hash" not in text, "another function", text)
    line, moved = (emass.Model.linear("y ~ x", {"x": [1.0, 2, 3, last], "y": [1.0, 2, 3, 4.5]}) for last in (4, 5))
    line.sample(**QUIET, output="line.h5")
    text = said(lambda: emass.resume("line.h5", moved, progress=False))
    report("line.h5 is complete and has other data: give those of the run, overwrite=True or another output" in text, "another frame", text)


def check_without_gradient():
    """Functions without a gradient are compared too; files of earlier versions have no hash to compare."""
    model, again, other = (emass.Model.from_function(lambda x, k=k: -x @ x / k, dim=2) for k in (2, 2, 3))
    draws = model.sample(**QUIET, output="value.h5")
    report(emass.resume("value.h5", again, draws=70, progress=False).posterior.theta[:, :60].equals(draws.posterior.theta), "a function without a gradient is extended")
    texts = [said(lambda: emass.resume("value.h5", other, progress=False)), said(lambda: emass.resume("value.h5", other, draws=90, progress=False))]
    report(all("other values than that of the run" in text for text in texts), "not by another function", *texts)
    with h5py.File("value.h5", "r+") as file:
        file.attrs["data_hash"] = np.bytes_("xxh64:0000000000000000")
    report(emass.resume("value.h5", again, progress=False).posterior.sizes["draw"] == 70, "without a hash it is read")


ENDING = f"import sys; sys.path.insert(0, {os.path.join(lib.ROOT, 'analysis')!r})" + """
import emass
calls = []
def density(x):
    calls.append(1)
    if len(calls) == int(sys.argv[2]): {"exit": lambda: sys.exit(7), "interrupt": stop}[sys.argv[3]]()
    return (-x @ x / 2, -x) if sys.argv[1] == "True" else -x @ x / 2
def stop(): raise KeyboardInterrupt
model = emass.Model.from_function(density, dim=2, gradient=sys.argv[1] == "True" or None)
try: model.check() if sys.argv[4:] else model.sample(chains=2, draws=2000, warmup=100, progress=False, output="ending.h5", overwrite=True)
except KeyboardInterrupt: print("interrupted")
print("goes on")
"""


def check_ends():
    """An exit or an interrupt inside a function ends the run, as in any other call."""
    for gradient in ("True", "None"):
        for n in ("1", "900"):
            for end, expected in (("exit", (7, "")), ("interrupt", (0, "interrupted\ngoes on\n"))):
                ran = lib.limited(sys.executable, "-W", "ignore", "-c", ENDING, gradient, n, end)
                report((ran.returncode, ran.stdout) == expected and "ignored" not in ran.stderr and (n == "1" or os.path.exists("ending.h5.checkpoint")),
                       f"{end} in evaluation {n}, gradient={gradient}", ran.returncode, ran.stdout, ran.stderr)
        ran = lib.limited(sys.executable, "-c", ENDING, gradient, "2", "exit", "check")
        report(ran.returncode == 7, f"in model.check(), gradient={gradient}", ran.returncode, ran.stderr)


def check_kinds():
    """Whatever a call is given, it raises an emass.Error of one line, which names place and what was found."""
    with open("text.h5", "w") as file:
        file.write("no HDF5\n")
    with open("broken.yaml", "w") as file:
        file.write("model: [\n")
    line = emass.Model.linear("y ~ x", {"x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 4.5]}, log_likelihood=True)
    draws = line.sample(**QUIET)
    arviz.from_dict(prior={"mu": np.zeros((2, 9))}).to_netcdf("prior.nc")
    array = np.zeros((3, 2))
    xarray.Dataset({"t": ("x", np.arange(3.0))}).to_netcdf("foreign.nc")
    with h5py.File("other.h5", "w") as file:
        file["g/d"] = np.arange(4.0)
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 4.5], "z": [1j, 2, 3, 4]})
    report(said(lambda: emass.Model.linear("y ~ x", frame).check()) == "no error", "complex numbers that are not used")
    of = emass.Model.from_function
    calls = {
        "read: a file that is not there": (lambda: emass.read("none.h5"), "none.h5: could not open: no such file"),
        "read: text": (lambda: emass.read("text.h5"), "text.h5: could not be read: expected an HDF5 file"),
        "read: other NetCDF": (lambda: emass.read("foreign.nc"), "foreign.nc: found no groups, expected a file of draws"),
        "read: other HDF5": (lambda: emass.read("other.h5"), "other.h5: found the group g, expected a file of draws"),
        "read: a checkpoint": (lambda: emass.read("ending.h5.checkpoint"), "ending.h5.checkpoint: found the checkpoint of a run (emass.resume"),
        "arguments in the other order": (lambda: emass.Model.linear(frame, "y ~ x"), "linear: formula: found DataFrame, expected text such as 'y ~ x', and the data behind it"),
        "complex numbers": (lambda: emass.Model.linear("y ~ z", frame), "data: found complex numbers in column 'z', expected real"),
        "a complex number in a list": (lambda: emass.Model.linear("y ~ z", {"y": [1, 2], "z": [1j, 2]}), "data: found complex numbers in column 'z', expected real"),
        "gradient=True without one": (lambda: of(half, dim=2, gradient=True).check(), "function: found no position within 1 of the origin where the log density is finite: TypeError: gradient=True: found one number, expected (log density, gradient)"),
        "an option that is no text": (lambda: emass.Model.built_in("linear", frame, formula="y ~ x", offset=frame).check(), "config: found DataFrame, which a config cannot hold"),
        "read: no path": (lambda: emass.read(None), "read: found NoneType, expected the path"),
        "plot: text": (lambda: emass.plot_trace("text.h5"), "text.h5: could not be read"),
        "plot: an array": (lambda: emass.plot_trace(array), "plot_trace: found ndarray, expected draws"),
        "resume: text": (lambda: emass.resume("text.h5"), "text.h5: could not be read"),
        "resume: no model": (lambda: emass.resume("text.h5", 5), "resume: found int, expected an emass.Model"),
        "a number as a column": (lambda: emass.Model.linear("y ~ x", {"x": 1.0, "y": 2.0}), "data: found float in column 'x', expected"),
        "an array of two axes as a column": (lambda: emass.Model.linear("y ~ x", {"x": array, "y": [1, 2, 3]}), "data: found list in column 'x', expected"),
        "levels": (lambda: emass.Model.linear("y ~ z", {"z": ["1", "2"], "y": [1, 2]}, levels=["2"]).check(), "config: model.levels: found"),
        "an array as data": (lambda: emass.Model.linear("y ~ x", array), "linear: data: found ndarray, expected a frame"),
        "an array to predict": (lambda: line.predict(array), "predict: found ndarray, expected a frame"),
        "a row of a frame to predict": (lambda: line.predict(pd.DataFrame({"x": [1.0, 2]}).iloc[0]), "predict: found Series, expected a frame"),
        "a column as a frame": (lambda: emass.Model.linear("y ~ x", pd.Series([1.0, 2])), "linear: data: found Series, expected a frame"),
        "a number to predict": (lambda: line.predict({"x": 80}), "data: found int in column 'x', expected a value for each row"),
        "plot: other groups": (lambda: emass.plot_trace("prior.nc"), "plot_trace: found no group posterior, expected draws"),
        "forest: other groups": (lambda: emass.plot_forest("prior.nc"), "plot_forest: found no group posterior, expected draws"),
        "run: settings": (lambda: emass.run({"model": {"name": "eight_schools"}}, settings=[5]), "run: settings: found list, expected a mapping"),
        "loo: a variable": (lambda: line.loo(var="z"), "loo: var: found 'z', expected one of y"),
        "loo: no draws": (lambda: emass.loo(array), "loo: found ndarray, expected draws"),
        "evidence: no draws": (lambda: emass.evidence(array), "evidence: found ndarray, expected draws"),
        "evidence: a list": (lambda: emass.evidence([array]), "evidence: found list, expected draws, the path of a file, or a mapping of names to these"),
        "evidence: of none": (lambda: emass.evidence({}), "evidence: found no runs"),
        "summary: of a group": (lambda: emass.summary(draws, group="zz"), "draws: found no group zz"),
        "report: nowhere to go": (lambda: emass.report(draws), "report: found draws, which have no file"),
        "a config that is no YAML": (lambda: emass.Model.from_config("broken.yaml"), "from_config: broken.yaml: "),
        "a number as config": (lambda: emass.run(5), "run: config: found int, expected a mapping"),
        "run: nothing to resume": (lambda: emass.run({"model": {"name": "eight_schools"}}, resume=True), "run: resume=True: found no output"),
        "a sampler": (lambda: line.sample(**QUIET, sampler=5), "sample: sampler: found 5, expected a name"),
        "settings": (lambda: line.sample(**QUIET, settings={5: 5}), "settings: found 5, expected the name of an option"),
        "an output": (lambda: line.sample(**QUIET, output=5), "sample: output: found int, expected the path"),
        "an object": (lambda: line.sample(**QUIET, settings={"output.variables": object()}), "config: found <object"),
        "a generator as seed": (lambda: line.sample(**QUIET, seed=np.random.default_rng(1)), "seed: found Generator(PCG64)"),
        "a large seed": (lambda: line.sample(**QUIET, seed=2**63), f"config: run.seed: found '{2**63}', expected an integer from 0 to {2**53}"),
        "half a draw": (lambda: line.sample(chains=2, draws=1.5), "draws: found 1.5, expected an integer"),
        "draws twice": (lambda: line.sample(**QUIET, settings={"run.draws": 70}), "sample: found draws=60 and settings={'run.draws': 70}"),
        "an output twice": (lambda: line.sample(**QUIET, output="a.h5", settings={"output.file": "b.h5"}), "sample: found output='a.h5' and"),
        "too many ranks": (lambda: line.sample(**QUIET, ranks=7), "number of ranks: found 7 for 2 chains, expected at most 2, or more chains"),
        "ranks for a function": (lambda: of(half, dim=2).sample(**QUIET, settings={"run.ranks_per_chain": 2}), "number of ranks: found 1, expected a multiple of 2, which is run.shards or run.ranks_per_chain (ranks=N starts N ranks)"),
        "no function": (lambda: of(5, dim=2), "from_function: log_density: found int, expected a function"),
        "a dimension": (lambda: of(half, dim=-1), "from_function: shape of theta: found (-1,), expected integers from 1"),
        "bounds": (lambda: of(half, dim=2, bounds={"theta": 5}).check(), "bounds of theta: found 5, expected a pair"),
        "outputs": (lambda: of(half, dim=2, gradient=True, outputs=lambda x: 1 / 0).check(), "outputs: ZeroDivisionError"),
    }
    for name, (call, expected) in calls.items():
        text = said(call)
        report(text.removeprefix(os.getcwd() + "/").startswith(expected) and "\n" not in text, name, text)


def check_predictions():
    """The frame's labels and the name of the response, also of one that is transformed."""
    frame = pd.DataFrame({"area": [50.0, 60, 70, 80, 90], "price": [1.0, 2, 3, 4, 5.5]}, index=list("abcde"))
    new = frame[["area"]].iloc[1:4]
    for formula, name in (("price ~ area", "price"), ("log(price) ~ area", "log(price)")):
        model = emass.Model.linear(formula, frame)
        model.sample(**QUIET)
        found = model.predict(new).predictions
        report(list(found.observation.values) == ["b", "c", "d"] and found.y.attrs["long_name"] == name and
               found.mu.attrs["long_name"] == f"mean of {name}" and found.y.shape == (2, 60, 3), formula, found, found.y.attrs)
    report(list(model.predict({"area": [1.0, 2]}).predictions.observation.values) == [0, 1], "columns have no labels")
    new = new.assign(area=new.area.where(new.area != 70))
    report(said(lambda: model.predict(new)).startswith("data: row c: found a missing value"), "nor has a missing value another row")
    dropped = emass.Model.linear("price ~ area", frame, na="drop")
    dropped.sample(**QUIET)
    text = printed(lambda: report(dropped.predict(new).predictions.sizes["observation"] == 2, "rows that are left out"))
    report("emass: warning: data: 1 of 3 rows" in text, "which is said", text)


QUIETLY = f"""
import sys; sys.path.insert(0, {os.path.join(lib.ROOT, 'analysis')!r})
import emass
model = emass.Model.built_in("eight_schools")
draws = model.sample(chains=2, draws=60, progress=False)
print(model._folder.name)
"""


def check_rest():
    ran = lib.limited(sys.executable, "-W", "ignore", "-W", "always::ResourceWarning", "-c", QUIETLY)
    report(ran.returncode == 0 and "emass-" not in ran.stderr and not os.path.exists(ran.stdout.strip()),
           "the folder of a run without output goes at exit, without a warning", ran.stdout, ran.stderr)
    calls = []

    def counted(x):
        calls.append(1)
        return -x @ x / 2, -x

    model = emass.Model.from_function(counted, dim=2, gradient=True)
    draws = model.sample(**QUIET, output="done.h5")
    other = emass.Model.from_function(counted, dim=2, gradient=True)
    calls.clear()
    again = [emass.resume("done.h5", *of, progress=False) for of in ([], [model])]
    report(not calls and all(one.posterior.equals(draws.posterior) for one in again), "a complete run of this process is read, without a call")
    again = emass.resume("done.h5", other, progress=False)
    report(len(calls) == 2 and again.posterior.equals(draws.posterior), "another model is called at two positions", len(calls))
    report(emass.resume("done.h5", other, draws=70, progress=False).posterior.sizes["draw"] == 70 and calls, "but extended if it is to be")
    tempered = emass.Model.built_in("eight_schools").sample(**QUIET, temper=True)
    report("log_bayes_factor_error" in emass.evidence(tempered), "the error of a log Bayes factor is called so")


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check_rejections()
    check_progress()
    check_resume()
    check_stopped()
    check_without_gradient()
    check_ends()
    check_kinds()
    check_predictions()
    check_rest()
lib.finish()
