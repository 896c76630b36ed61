#!/usr/bin/env python3
"""Signals to a script of Python whose run is in its process, in ranks of the program, or in ranks of Python: a
checkpoint, emass.Stopped, the same draws after emass.resume; also if the script is killed. TAP; $1: the build."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lib
from lib import report

lib.needs_front_ends("signals to scripts of Python")
lib.use_package()

import emass  # noqa: E402

# Of 100,000 draws, each of so many leapfrog steps that the run cannot end before a signal comes.
# What is resumed has few draws.
SCRIPT = """
import sys; sys.path.insert(0, {analysis!r})
import emass, signal
model = {model}
try:
    model.sample(draws=10**5, ranks={ranks}, output={output!r}, **{options!r})
except emass.Stopped as stopped:
    print(stopped.status, stopped.file, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, stopped)
"""
OPTIONS = {"chains": 2, "warmup": 20, "seed": 3, "settings": {"stop.check_every": 20}}
PROGRAM = "emass.Model.built_in('gaussian', dim=5)", 20000
FUNCTION = "emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=3, gradient=True)", 200
# Each evaluation is a run of its own, during which the signal comes.
NESTED = """emass.Model.from_function(lambda x: -x @ x / 2 + emass.Model.from_function(lambda y: (-y @ y / 2, -y), dim=2,
    gradient=True).sample(chains=1, warmup=20, draws=300, seed=1, progress=False,
    sampler={'name': 'hmc', 'leapfrog_steps': 150}).posterior.chain.values[0], dim=1)""", None
RUNS = {"in process": (FUNCTION, None), "ranks of the program": (PROGRAM, 2), "ranks of Python": (FUNCTION, 2),
        "nested": (NESTED, None)}


def options(steps):
    if steps is None:
        return {"chains": 1, "warmup": 5, "seed": 3, "sampler": "rwm"}
    return {**OPTIONS, "sampler": {"name": "hmc", "leapfrog_steps": steps}}


def waits_for(holds):
    """Whether it holds in the end. The limit is for what hangs."""
    for _ in range(10 * int(lib.LIMIT)):
        if holds():
            return True
        time.sleep(0.1)
    return False


def processes(folder):
    """Of those that are at work for a run in the folder, the command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:  # it has ended
            continue
        if os.fsencode(folder) in words and int(path.parent.name) != os.getpid():
            found.append(words.replace(b"\0", b" ")[:300])
    return found


def start(name, file):
    """The script, once its run has begun."""
    (model, steps), ranks = RUNS[name]
    analysis = os.path.join(lib.ROOT, "analysis")
    text = SCRIPT.format(analysis=analysis, model=model, ranks=ranks, output=file, options=options(steps))
    child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if line.startswith(("warmup", "sampling")):
            break
    return child


def goes_on(name, file):
    """Whether the run that was stopped has the draws of one that was not, in every bit."""
    (model, steps), _ = RUNS[name]
    model = eval(model)
    theta = emass.read(file).posterior.theta
    draws = int(theta.notnull().all(theta.dims[::2]).sum()) + 10
    resumed = emass.resume(file, model, draws=draws, progress=False).posterior
    whole = model.sample(draws=draws, progress=False, **options(steps)).posterior
    return resumed.theta.shape[1] == draws and resumed.theta.values.tobytes() == whole.theta.values.tobytes()


def check_stop(name, folder):
    file = f"{folder}/stopped.h5"
    child = start(name, file)
    if name == "nested":
        time.sleep(0.5)
    child.send_signal(signal.SIGTERM)
    try:
        out, err = child.communicate(timeout=float(lib.LIMIT))
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
    report(child.returncode == 0 and out.startswith(f"75 {file} True stopped by a signal") and
           "emass.resume(" in out and out.count("\n") == 1 and
           os.path.exists(f"{file}.checkpoint") and not processes(folder),
           f"{name}: SIGTERM is emass.Stopped, with a checkpoint", child.returncode, out, err, *processes(folder))
    report(goes_on(name, file), f"{name}: and the run goes on to the same draws")


def check_second(name, folder):
    file = f"{folder}/twice.h5"
    child = start(name, file)
    child.send_signal(signal.SIGUSR1)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate()
    report(-child.returncode in (signal.SIGUSR1, signal.SIGTERM) and not out and
           os.path.exists(f"{file}.checkpoint") and not processes(folder),
           f"{name}: a second signal is raised when the run has stopped", child.returncode, out, err)


def check_killed(name, folder):
    file = f"{folder}/killed.h5"
    child = start(name, file)
    report(not left(folder), f"{name}: files that only the ranks read are gone", left(folder))
    child.kill()
    child.communicate()
    report(waits_for(lambda: not processes(folder)) and os.path.exists(f"{file}.checkpoint"),
           f"{name}: ranks whose script was killed end with a checkpoint", *processes(folder))
    report(goes_on(name, file) and not left(folder), f"{name}: that run goes on to the same draws too", left(folder))


def left(folder):
    return [*Path(folder).glob(".emass-*"), *Path(tempfile.gettempdir()).glob("emass-*.model")]


def check_left_files(folder):
    """Files that a front end left when it was killed before the ranks had read them."""
    import fcntl

    paths = [Path(folder, f".emass-{name}.yaml") for name in ("old", "used", "new")]
    for path in paths:
        path.touch()
    for path in paths[:2]:
        os.utime(path, (0, 0))
    with open(paths[1], "rb") as used:
        fcntl.flock(used, fcntl.LOCK_EX)
        asked = {"chains": 2, "draws": 20, "ranks": 2, "progress": False}
        emass.Model.built_in("eight_schools").sample(output=f"{folder}/next.h5", **asked)
        report([path.exists() for path in paths] == [False, True, True],
               "the next run removes what a killed one has left", left(folder))


with tempfile.TemporaryDirectory(prefix="emass-signals-") as work:
    os.environ["TMPDIR"] = tempfile.tempdir = work
    for number, name in enumerate(RUNS):
        os.mkdir(own := f"{work}/{number}")
        check_stop(name, own)
        if name != "nested":
            check_second(name, own)
        if RUNS[name][1]:
            check_killed(name, own)
    os.mkdir(own := f"{work}/left")
    check_left_files(own)
lib.finish()
