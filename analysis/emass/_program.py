"""The program `emass`: finds it, runs it and reads its messages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from . import _mpi, _signals
from ._errors import Error, NotInstalled, Stopped
from .progress import Bar

__all__ = ["CONFIG_PREFIX", "ask", "environment", "fail", "plainly", "program", "watch"]

CONFIG_PREFIX = ".emass-"  # of the file of a config; what is said of it is said of the config
FRAME = ".emass-new.csv"  # the file of a frame to predict; what is said of it is said of the data


def program() -> str:
    """The path of the program. Raises NotInstalled if there is none."""
    beside = Path(__file__).resolve().parents[2] / "build" / "release" / "emass"
    found = os.environ.get("EMASS") or _by_pip() or shutil.which("emass") or (str(beside) if beside.exists() else None)
    if not found:
        raise NotInstalled("emass is not on the PATH: make install, or set EMASS to its path")
    return found


def _by_pip() -> str | None:
    """The program that pip installed with this package: the script of this Python or, if that is
    elsewhere, the program itself, which needs `environment()`."""
    if not _mpi.is_installed():
        return None
    script = Path(sys.executable).parent / "emass"
    if script.exists():
        return str(script)
    try:
        return _mpi.choose().file("emass")
    except FileNotFoundError as error:
        raise NotInstalled(str(error)) from None


# Words of the program, as patterns, and what stands for them in Python.
_TERMS = (
    (r"give --overwrite, --resume or another --output", "give overwrite=True or another output, or go on by emass.resume"),
    (r"give --resume, --overwrite or another --output", "go on by emass.resume, or give overwrite=True or another output"),
    (r"has another config: model\.data differ; give the old values", "has other data: give those of the run"),
    (r"go on with --resume|(emass run )?--resume (?=goes on|continues)", lambda found: "go on with emass.resume" if "go on" in found[0] else "emass.resume "),
    (r"or set run\.init_radius\)", "or give settings={'run.init_radius': ...})"),
    (r" \(see emass [a-z]+ --help\)", ""),
    (r": emass summary --group \w+\)", ")"),
    (r"--ranks N starts N ranks", "ranks=N starts N ranks"),
    (r"--(overwrite|resume|common)\b", r"\1=True"),
    (r"--(output|ranks|header|decimal|format)\b", r"\1"),
    (r" \(mpirun -n starts ranks\)", " (ranks=N starts N)"),
    (r"--set (?=\S+: )", "settings: "),
)


def plainly(said: str) -> str:
    """A message of emass in the terms of Python: with arguments instead of options, and without
    names of files that this package wrote."""
    for words, ours in _TERMS:
        said = re.sub(words, ours, said)
    said = re.sub(r"[^\s:]*\.[0-9a-f]{12}\.(stan|csv|json)", lambda found: "program" if found[1] == "stan" else "data", said)
    said = re.sub(rf"[^\s:]*{re.escape(FRAME)}", "data", said)
    return re.sub(rf"\S*{re.escape(CONFIG_PREFIX)}\w+\.yaml(:\d+)?: ", "config: ", said)


def fail(status: int, said: str) -> NoReturn:
    """Raises the message that the program wrote on standard error. If a run was stopped, that is the
    last line, and the lines before it are printed."""
    said = plainly(said)
    lines = [line.removeprefix("emass: ") for line in said.splitlines() if line.startswith("emass: ")]
    if status != 75:
        raise Error("\n".join(lines) or said.strip() or f"emass: exit status {status}", status)
    for line in lines[:-1]:
        print(f"emass: {line}", file=sys.stderr)
    raise Stopped(lines[-1] if lines else "stopped by a signal before the run began", status)


def environment() -> dict[str, str]:
    """The environment of the program. Programs that pip installed beside this Python are found, even off the PATH."""
    return _mpi.environment()


def ask(*words: str) -> str:
    """Runs the program with these arguments and returns its output; prints warnings. Raises Error with its message."""
    done = subprocess.run(
        [program(), *words], capture_output=True, text=True, encoding="utf-8", check=False, env=environment()
    )
    if done.returncode:
        fail(done.returncode, done.stderr)
    for line in done.stderr.splitlines():
        if line.startswith("emass: warning: "):
            print(plainly(line), file=sys.stderr)
    return done.stdout


def watch(arguments: Sequence[str], progress: bool, env: Mapping[str, str] | None = None) -> None:
    """Runs the program with arguments of a run, whose lines of progress (`--progress log`) are
    shown. Signals that ask for a stop are passed on: the run writes its checkpoint and ends; a
    second SIGINT ends it at once. If this process is killed, the run stops too (EMASS_PARENT).
    Raises Error or Stopped with its message."""
    bar, said = Bar(progress), []
    with subprocess.Popen(
        [program(), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**(env or environment()), "EMASS_PARENT": str(os.getpid())},
        start_new_session=True,
    ) as process, _signals.caught(process.send_signal):
        assert process.stderr
        for line in process.stderr:
            if match := re.match(r"[\d-]{10} [\d:]{8} (.*)", line):
                bar.show(match[1])
            else:
                said.append(line)
        status = process.wait()
    bar.close()
    for line in said if not status else []:
        print(line, end="", file=sys.stderr)
    if status:
        fail(status, "".join(said))
