"""The program `emass`: where it is, what it is asked, what it says."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from . import _mpi
from ._errors import Error, Stopped
from .progress import Bar

__all__ = ["CONFIG_PREFIX", "ask", "environment", "fail", "launcher", "plainly", "program", "watch"]

CONFIG_PREFIX = ".emass-"  # of the file of a config; what is said of it is said of the config
FRAME = ".emass-new.csv"  # the file of a frame to predict; what is said of it is said of the data


def program() -> str:
    """The path of the program. Raises FileNotFoundError where there is none."""
    beside = Path(__file__).resolve().parents[2] / "build" / "release" / "emass"
    found = os.environ.get("EMASS") or _by_pip() or shutil.which("emass") or (str(beside) if beside.exists() else None)
    if not found:
        raise FileNotFoundError("emass is not on the PATH: make install, or set EMASS to its path")
    return found


def _by_pip() -> str | None:
    """The program that pip installed with this package: the script of this Python or, if that is
    elsewhere, the program itself, which needs `environment()`."""
    if not _mpi.is_installed():
        return None
    script = Path(sys.executable).parent / "emass"
    return str(script) if script.exists() else _mpi.choose().file("emass")


def plainly(said: str) -> str:
    """A message of emass in the terms of Python: with arguments instead of options, and without
    names of files that this package wrote."""
    said = said.replace("give --overwrite, --resume or another --output", "give overwrite=True or another output, or go on by emass.resume")
    said = re.sub(r"[^\s:]*\.[0-9a-f]{12}\.(stan|csv|json)", lambda found: "program" if found[1] == "stan" else "data", said)
    said = re.sub(rf"[^\s:]*{re.escape(FRAME)}", "data", said)
    return re.sub(rf"\S*{re.escape(CONFIG_PREFIX)}\w+\.yaml(:\d+)?: ", "config: ", said)


def fail(status: int, said: str) -> NoReturn:
    """Raises what the program wrote on standard error."""
    said = plainly(said)
    message = "\n".join(line.removeprefix("emass: ") for line in said.splitlines() if line.startswith("emass: "))
    raise (Stopped if status == 75 else Error)(message or said.strip() or f"emass: exit status {status}", status)


def environment() -> dict[str, str]:
    """That of the program: what pip installed beside this Python is found, although its folder is not on the PATH."""
    return _mpi.environment()


def ask(*words: str) -> str:
    """What the program prints for these words. Raises Error with the line that it said."""
    done = subprocess.run(
        [program(), *words], capture_output=True, text=True, encoding="utf-8", check=False, env=environment()
    )
    if done.returncode:
        fail(done.returncode, done.stderr)
    return done.stdout


def launcher(ranks: int) -> tuple[list[str], dict[str, str]]:
    """The words that start so many processes, and what they find in their environment: as the
    program's --ranks."""
    found = environment()
    words = found.get("EMASS_LAUNCHER", "").split()
    if not words and "SLURM_JOB_ID" in os.environ and shutil.which("srun"):
        kinds = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, check=False)
        pmi = "pmi2" if _mpi.is_installed() and _mpi.choose().kind == "mpich" else "pmix"
        words = ["srun", "--quiet", "--wait=60", f"--mpi={pmi}"] if pmi in kinds.stdout + kinds.stderr else []
    words = words or ["mpirun"]
    if not shutil.which(words[0], path=found.get("PATH")):
        raise Error(f"{words[0]} cannot be started: put the MPI that emass uses on the PATH, or name a launcher in EMASS_LAUNCHER")
    given = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_orte_execute_quiet": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    if ranks > (os.cpu_count() or 1):
        given |= {
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_mpi_yield_when_idle": "1",
        }
    if os.geteuid() == 0:  # containers forbid one process to read another's memory
        given["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
    return [*words, "-n", str(ranks)], given


def watch(
    words: Sequence[str], progress: bool, env: Mapping[str, str] | None = None, stop: signal.Signals = signal.SIGINT
) -> None:
    """Runs a command that writes lines of progress as the program's `--progress log`. These are
    shown. An interrupt sends `stop`, and the run writes its checkpoint; a second interrupt ends it.
    Raises Error or Stopped with its message."""
    bar, said, interrupts = Bar(progress), [], 0
    with subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=dict(env or environment()),
        start_new_session=True,
    ) as process:
        assert process.stderr
        while True:
            try:
                for line in process.stderr:
                    if match := re.match(r"[\d-]{10} [\d:]{8} (.*)", line):
                        bar.show(match[1])
                    else:
                        said.append(line)
                status = process.wait()
                break
            except KeyboardInterrupt:
                interrupts += 1
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(stop if interrupts == 1 else signal.SIGTERM)
    bar.close()
    for line in said if not status else []:
        print(line, end="", file=sys.stderr)
    if status:
        fail(status, "".join(said))
