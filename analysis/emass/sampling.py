"""Runs a model: in this process, by the program, or by ranks of Python."""

from __future__ import annotations

import dataclasses
import numbers
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _library, _program
from ._commands import Draws, read, tell_verdict
from ._errors import Error, Stopped, needs, path_of
from .data import Files, as_file, as_json, from_json, is_frame, table, temporary
from .progress import Bar

__all__ = ["A_FRAME", "Job", "perform"]

A_FRAME = "a frame of pandas or polars, a mapping of columns, or the path of a table"


class Folder:
    """A temporary folder, removed with the object, or at exit, without a ResourceWarning."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="emass-")
        self._removal = weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)

    def keep(self) -> None:
        """Keeps the folder."""
        self._removal.detach()


@dataclasses.dataclass
class Job:
    """A run: its model, config and output file."""

    config: dict[str, Any]
    files: Files
    source: Any  # of a density; None: the config's model is emass's own
    density: Any = None  # compiled from the source, in this process
    output: str | None = None
    folder: str | None = None  # from which the config names files; None: that of the output
    mode: int = _library.NEW
    progress: bool = True

    def text(self, file: Path) -> str:
        """The config with the names of its files and its output, as rank 0 runs it."""
        model = dict(self.config["model"])
        for option, name in self.files.write(file).items():
            model[option] = name
        output = dict(self.config.get("output") or {}, file=os.path.abspath(file))
        try:
            return as_json({**self.config, "model": model, "output": output})
        except TypeError as error:
            raise Error(f"config: {error}") from None


def perform(job: Job, ranks: int | None, comm: Any = None) -> tuple[Draws, str | None, Any]:
    """Runs the job; returns the draws, their file, and the object that keeps that file."""
    if ranks is not None and (not isinstance(ranks, numbers.Integral) or ranks < 1):
        raise Error(f"ranks: found {ranks!r}, expected an integer from 1")
    if ranks is not None and ranks > 1:
        if _library.is_launched():
            raise Error("ranks starts the ranks itself: leave it out under mpirun or srun")
        if comm is not None:
            raise Error("found ranks and comm, expected one of them")
        return _elsewhere(job, ranks)
    return _here(job, comm)


# ---------------------------------------------------------------- in this process


def _here(job: Job, comm: Any) -> tuple[Draws, str | None, Any]:
    bar = Bar(job.progress)
    with _library.Context(comm) as context:
        if job.density is not None:
            context.add(job.density)
        config, folder = "", None
        try:
            if context.rank == 0:
                file, folder = _place(job)
                config = job.text(file)
            problem = None
        except (Error, OSError, TypeError) as error:
            problem = error
        context.agree(problem)
        path = ""
        if context.rank == 0:
            path = f"{job.folder or os.path.dirname(folder_of(job, folder))}/{_program.CONFIG_PREFIX}x.yaml"
        shown = bar if context.rank == 0 else Bar(False)
        try:
            file_name, notes = context.run(config, path, job.mode, shown.show)
        except Stopped as stopped:
            raise _stopped(stopped, job, folder) from None
        finally:
            shown.close()
        try:
            draws, problem = read(file_name), None
        except Exception as error:  # so that no rank waits for one that could not read
            draws, problem = None, error
        context.agree(problem)
        if context.rank == 0:
            _tell(job, draws, notes)
        return draws, file_name, folder


def folder_of(job: Job, folder: Any) -> str:
    """The output file of the job, or one in a temporary folder if none was named."""
    return os.path.abspath(job.output) if job.output else os.path.join(folder.name, "draws.h5")


def _place(job: Job) -> tuple[Path, Any]:
    folder = None if job.output else Folder()
    file = Path(folder_of(job, folder))
    if not file.parent.is_dir():
        raise Error(f"output: {file}: found no folder {file.parent}")
    return file, folder


def _tell(job: Job, draws: Draws, notes: list[str]) -> None:
    for note in notes if job.progress else []:
        print(f"emass: {note}", file=sys.stderr)
    tell_verdict(draws, job.progress)


def _stopped(stopped: Stopped, job: Job, folder: Any) -> Stopped:
    """The exception for a stopped run, with its file, which is kept even if the caller named none."""
    file = folder_of(job, folder) if job.output or folder else None
    if folder is not None:
        folder.keep()  # the checkpoint stays
    said = str(stopped).replace("go on with emass.resume", f"go on with emass.resume({file!r})")
    return Stopped(said, stopped.status, file)


# ---------------------------------------------------------------- in others


def _elsewhere(job: Job, ranks: int) -> tuple[Draws, str | None, Any]:
    file, folder = _place(job)
    with as_file(_content(job, file), job.folder or str(file.parent)) as config:
        try:
            if job.source is None:
                _by_program(job, config, ranks)
            else:
                _by_workers(job, config, ranks)
        except Stopped as stopped:
            raise _stopped(stopped, job, folder) from None
    draws = read(file)
    _tell(job, draws, [])
    return draws, str(file), folder


def _content(job: Job, file: Path) -> Mapping[str, Any]:
    return from_json(job.text(file))


def _by_program(job: Job, config: Path, ranks: int) -> None:
    mode = {_library.OVERWRITE: ["--overwrite"], _library.RESUME: ["--resume"]}.get(job.mode, [])
    words = ["run", str(config), "--remove-config", "--ranks", str(ranks), *mode, "--progress", "log"]
    _program.watch(words, job.progress)


def _by_workers(job: Job, config: Path, ranks: int) -> None:
    """Runs each rank as a Python process, which gets the model by cloudpickle."""
    cloudpickle = needs("cloudpickle", "ranks of a model in Python")
    try:
        content = cloudpickle.dumps(job.source)
    except Exception as error:  # whatever a member of the model raises
        raise Error(f"the model cannot be sent to other ranks: {error}; start them by mpirun instead") from error
    env = _program.environment()
    paths = [str(Path(__file__).resolve().parents[1]), *(path or os.getcwd() for path in sys.path)]
    env["PYTHONPATH"] = os.pathsep.join(paths)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):  # ranks are the parallelism
        env.setdefault(name, "1")
    with temporary(content, tempfile.gettempdir(), "emass-", ".model") as model:
        worker = [sys.executable, "-m", "emass._worker", str(model), str(config), str(job.mode)]
        _program.watch(["launch", "--ranks", str(ranks), "--", *_IGNORING, *worker], job.progress, env)


# Starts a command that the signal for a stop does not end before it handles it.
_IGNORING = ("sh", "-c", 'trap "" USR1; exec "$0" "$@"')


# ---------------------------------------------------------------- other commands


def ask_about(job: Job, command: str) -> str:
    """The output of a command of the program for the config."""
    with tempfile.TemporaryDirectory(prefix="emass-") as folder:
        with as_file(_content(job, Path(folder) / "draws.h5"), folder) as config:
            return _program.ask(command, str(config))


def predict(file: str, new: Any, model: str, reading: Mapping[str, str]) -> Draws:
    """emass predict of a frame, a mapping of columns or a path. A path is read as the data of the run of this model,
    but for the options in `reading`."""
    with tempfile.TemporaryDirectory(prefix="emass-") as folder:
        path = os.path.join(folder, _program.FRAME)
        if is_frame(new):
            Path(path).write_bytes(table(new, is_new=True))
            reading = {"header": "yes"} if model == "network" else {"header": "yes", "decimal": "point", "format": "comma"}
        else:
            path = os.path.abspath(path_of(new, "predict", A_FRAME))
        words = (f"--{key}={value}" for key, value in reading.items())
        _program.ask("predict", file, "--data", path, *words, "--output", os.path.join(folder, "p.h5"))
        return read(os.path.join(folder, "p.h5"))
