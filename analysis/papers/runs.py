"""The runs of jobs/papers/runs: started by emass, each once, and the files of draws they leave."""

import concurrent.futures
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import h5py
import numpy as np

CUT = 75  # the exit status of a run that goes on when it is asked to
JOBS = Path(__file__).resolve().parents[2] / "jobs" / "papers"


@dataclass
class Run:
    name: str
    config: Path
    settings: list
    file: Path
    why: str = ""  # it has no file

    def missing_data(self, environment):
        """The file of data that is not there, or nothing; EMASS_DATA may be unset."""
        paths = re.findall(r"\bdata[:=] *'?(\$[^:'\s,}]*\}[^:'\s,}]*)", self.asked())
        if not paths:
            return ""
        path = paths[-1]
        for name, value in environment.items():
            path = path.replace("${" + name + "}", value)
        images = Path(path).parent.glob(f"{Path(path).name}-images-*")  # of a pair of IDX files
        return "" if Path(path).exists() or any(images) else f"needs {path}"

    def asked(self):
        return "\n".join([self.config.read_text(), *self.settings])

    def is_as_asked(self):
        """What is kept beside its file is what is asked now, but for comments."""
        kept = self.file.with_suffix(".asked")
        return kept.exists() and without_comments(kept.read_text()) == without_comments(self.asked())

    def has_ended(self):
        """Its file is there, and is that of a whole run."""
        try:
            with h5py.File(self.file) as file:
                return bool(file.attrs.get("complete", 0))
        except OSError:
            return False


def read_runs(folder, only, shorten, table="runs"):
    """A table, or what of it matches one of the patterns; `shorten` divides warmup and draws."""
    runs = []
    for line in (JOBS / table).read_text().splitlines():
        words = line.split("#")[0].split()
        if words and (not only or any(fnmatch(words[0], pattern) for pattern in only)):
            name, config, *settings = words
            config = JOBS / f"{config}.yaml"
            if shorten > 1:
                settings += shorter(config.read_text() + "\n".join(settings), shorten)
            runs.append(Run(name, config, settings, folder / "runs" / f"{name}.h5"))
    return runs


def shorter(text, factor):
    settings = []
    for key in ("warmup", "draws"):
        planned = int(re.findall(rf"\b{key}[:=] *(\d+)", text)[-1])
        settings.append(f"run.{key}={max(planned // factor, min(planned, 20))}")
    return settings


def start(run, emass, environment, limit=None):
    """Runs it, or finds it done; returns seconds, and what emass said if it failed. What
    was asked is kept beside the file, so that it is run anew when that has changed, but for comments.
    A run that meets its limit of time is one so far, and goes on the next time."""
    begin = time.monotonic()
    same = run.is_as_asked()
    if same and run.has_ended():
        return 0.0, ""
    run.file.parent.mkdir(parents=True, exist_ok=True)
    run.file.with_suffix(".asked").write_text(run.asked())
    if not same:
        run.file.with_suffix(".times").unlink(missing_ok=True)
    command = [emass, "run", run.config, "--output", run.file, "--quiet", "--progress=none"]
    command += ["--resume" if same else "--overwrite"]
    command += ["--max-time", limit] if limit else []
    for setting in run.settings:
        command += ["--set", setting]
    before = cpu_seconds()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    kept, so_far = run.file.with_suffix(".cpu"), 0.0
    if same and kept.exists():
        so_far = float(kept.read_text())
    kept.write_text(f"{so_far + cpu_seconds() - before:.1f}\n")
    if done.returncode in (0, CUT):
        return seconds, ""
    return seconds, (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def without_comments(config):
    return re.sub(r"(?m)^ *#.*\n", "", config)


def cpu_seconds():
    """Of all runs that have ended: of one, where one is run at a time."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


TIMES = 3  # rounds


def time_in_turn(runs, emass, environment, beside, finish):
    """One after the other, alone; then again, in rounds with what they are held against, so that what
    else the machine does meets all of them alike. Seconds of each round are kept beside the file."""
    for run in runs:
        finish(run, start(run, emass, environment))
    for _ in range(TIMES - 1):
        waiting = [run for run in runs if not run.why and len(times(run.file)) < TIMES]
        for run in waiting:
            again = replace(run, file=run.file.with_suffix(".again.h5"))
            if not start(again, emass, environment)[1]:
                with open(run.file.with_suffix(".times"), "a") as kept:
                    kept.write(f"{sampling_time(again.file)!r}\n")
            for leftover in run.file.parent.glob(f"{again.file.stem}.*"):
                leftover.unlink()
        for measure in beside if waiting else ():
            measure()


def times(file):
    """Seconds of sampling in each round, that of the file itself first."""
    kept = file.with_suffix(".times")
    again = kept.read_text().split() if kept.exists() else []
    return [sampling_time(file), *map(float, again)]


def sampling_time(file):
    with h5py.File(file) as draws:
        return float(draws.attrs["sampling_time"])


def execute(runs, emass, folder, workers, limit=None, beside=()):
    """All that have the data they need: `workers` at a time, the timed ones alone, in rounds with the
    functions `beside`; none for longer than the limit."""
    environment = dict(os.environ, PAPERS=str(folder), OPENBLAS_NUM_THREADS="1")
    for run in runs:
        run.why = run.missing_data(environment)
    ready = [run for run in runs if not run.why]
    timed = [run for run in ready if "/time/" in run.name]
    together = [run for run in ready if run not in timed]
    count = 0

    def finish(run, outcome):
        nonlocal count
        count += 1
        seconds, run.why = outcome
        print(f"[{count}/{len(ready)}] {run.name} {seconds:.1f} s {run.why}", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        waiting = {pool.submit(start, run, emass, environment, limit): run for run in together}
        for future in concurrent.futures.as_completed(waiting):
            finish(waiting[future], future.result())
    time_in_turn(timed, emass, environment, beside, finish)


class Results:
    """What the files of draws hold, by the name of the run."""

    def __init__(self, runs, folder):
        self.folder = folder
        self.runs = {run.name: run for run in runs}

    def has(self, *names):
        return all(name in self.runs and not self.runs[name].why for name in names)

    def draws(self, name, variable, group="posterior"):
        """[chain][draw]..., or what is said of all."""
        with h5py.File(self.runs[name].file) as file:
            return file[group][variable][()]

    def iterations(self, name):
        """Of one chain: warmup and draws."""
        with h5py.File(self.runs[name].file) as file:
            attributes = file.attrs
            thin = int(re.findall(r"\bthin: (\d+)", text(attributes["config"]))[0])
            return int(attributes["tuning_steps"]) + file["posterior/draw"].size * thin

    def planned(self, name):
        """Iterations of one chain when it is done."""
        with h5py.File(self.runs[name].file) as file:
            config = text(file.attrs["config"])
        warmup, draws, thin = (int(re.findall(rf"\b{key}: (\d+)", config)[0]) for key in ("warmup", "draws", "thin"))
        return warmup + draws * thin

    def cpu_seconds(self, name):
        """Of a run of its own, cut or not; NaN while it has not ended, nor been cut."""
        kept = self.runs[name].file.with_suffix(".cpu")
        return float(kept.read_text()) if kept.exists() else float("nan")

    def seconds(self, name):
        """The smallest of its rounds, where it was timed in some."""
        return min(times(self.runs[name].file))

    def milliseconds(self, name):
        """Of an iteration of one chain."""
        with h5py.File(self.runs[name].file) as file:
            chains = file["posterior/chain"].size
        return 1e3 * self.seconds(name) / self.iterations(name) / chains

    def commit(self, name):
        """Of the emass that made it."""
        with h5py.File(self.runs[name].file) as file:
            return text(file.attrs["git_commit"])

    def diverging(self, name):
        return float(np.mean(self.draws(name, "diverging", "sample_stats")))


def together(names, every):
    """Names, those of a folder as `folder/*` where all that it has are among them."""
    shown = []
    for name in names:
        parts = name.split("/")
        folders = ["/".join(parts[:n]) + "/" for n in range(1, len(parts))]
        whole = [f for f in folders if all(other in names for other in every if other.startswith(f))]
        shown.append(whole[0] + "*" if whole else name)
    return dict.fromkeys(shown)


def say_builds(page, results, names):
    """Which emass made these runs: files of several are not mixed unsaid."""

    def folders(runs):
        return ", ".join(f"`{part}`" for part in together(runs, results.runs))

    builds = {}
    for name in names:
        builds.setdefault(results.commit(name), []).append(name)
    if len(builds) == 1:
        page.say(f"All by emass of commit {next(iter(builds))}.")
    elif builds:
        page.say("By emass of commit " + "; ".join(f"{c}: {folders(runs)}" for c, runs in builds.items()) + ".")


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)
