"""libemass in this process, by ctypes: MPI, contexts, densities and runs (include/emass/host.h)."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from . import _mpi, _program, _signals
from ._errors import Error, NotInstalled, Stopped

__all__ = ["Context", "end_by", "fail_with", "is_first", "is_launched", "last_error", "library", "raising"]

GRADIENT = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
VALUE = ctypes.CFUNCTYPE(c_double, c_void_p, c_void_p)
OUTPUTS = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
_MESSAGE = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
_PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)

NEW, OVERWRITE, RESUME = 1, 2, 3  # em_run_mode
STOPPED = -9  # EM_ESTOPPED

# What em_host_start sets for MPI to read when it opens a file, or whenever it waits.
_READ_LATER = {b"OMPI_MCA_io", b"OMPI_MCA_fbtl_posix_write_datasieving", b"OMPI_MCA_mpi_yield_when_idle"}

_TEXTS = POINTER(c_char_p)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "em_error_text": (c_char_p, []),
    "em_exit_status": (c_int, [c_int]),
    "em_fail": (c_int, [c_int, c_char_p, c_char_p]),
    "em_host_start": (c_int, []),
    "em_host_stop": (None, []),
    "em_host_context": (c_int, [c_int, _MESSAGE, c_void_p, POINTER(c_void_p)]),
    "em_host_rank": (c_int, [c_void_p]),
    "em_host_ranks": (c_int, [c_void_p]),
    "em_host_agree": (c_int, [c_void_p, c_int]),
    "em_host_run": (c_int, [c_void_p, c_char_p, c_char_p, c_int, _PROGRESS, c_void_p, POINTER(c_void_p)]),
    "em_host_note": (c_int, [c_void_p, c_int64, c_int64, c_char_p]),
    "em_host_describe": (None, [c_void_p, c_int64, c_char_p]),
    "em_run_advance": (c_int, [c_void_p, c_int64]),
    "em_run_report": (c_void_p, [c_void_p]),
    "em_run_file": (c_char_p, [c_void_p]),
    "em_run_destroy": (None, [POINTER(c_void_p)]),
    "em_context_interrupt": (None, [c_void_p]),
    "em_context_destroy": (None, [POINTER(c_void_p)]),
    "em_context_add_density": (c_int, [c_void_p, c_void_p]),
    "em_density_create": (c_int, [c_char_p, c_int64, c_uint64, POINTER(c_void_p)]),
    "em_density_destroy": (None, [POINTER(c_void_p)]),
    "em_density_compute": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "em_density_name": (c_int, [c_void_p, c_int64, c_char_p]),
    "em_density_add_parameter": (
        c_int,
        [c_void_p, c_char_p, c_int, POINTER(c_int64), _TEXTS, c_int, c_double, c_double],
    ),
    "em_density_add_output": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_int64), _TEXTS, c_int, c_int]),
    "em_density_add_data": (c_int, [c_void_p, c_char_p, c_char_p, c_int, POINTER(c_int64), _TEXTS, c_void_p]),
    "em_density_label_axis": (c_int, [c_void_p, c_char_p, c_int64, _TEXTS]),
}


def _candidates() -> Iterator[str]:
    """The places where libemass may be: EMASS_LIBRARY, pip's copy, beside the program, the loader's folders."""
    if named := os.environ.get("EMASS_LIBRARY"):
        yield named
        return
    if _mpi.is_installed() and "EMASS" not in os.environ:
        try:
            yield _mpi.load()
        except FileNotFoundError as error:
            raise NotInstalled(str(error)) from None
        return
    with contextlib.suppress(NotInstalled):
        folder = Path(_program.program()).resolve().parent
        for place in (folder, folder.parent / "lib"):
            yield from (str(place / name) for name in ("libemass.so.0", "libemass.so") if (place / name).exists())
    yield "libemass.so.0"


def _share_mpi() -> None:
    """Loads libmpi with global symbols, which plug-ins of Open MPI need."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "libmpi" in line or "libopen-" in line}
    for path in paths:
        with contextlib.suppress(OSError):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


@functools.cache
def library() -> ctypes.CDLL:
    """Loads libemass and starts MPI. Raises Error if there is no library."""
    failed = "nothing"
    for path in _candidates():
        try:
            found = ctypes.CDLL(path)
        except OSError as error:
            failed = str(error)
            continue
        for name, (result, arguments) in _FUNCTIONS.items():
            try:
                function = getattr(found, name)
            except AttributeError:
                raise Error(f"{path}: found no {name}, expected libemass of version 0.1.0 or later") from None
            function.restype, function.argtypes = result, arguments
        _start(found)
        return found
    raise NotInstalled(
        "libemass was not found: make install, or set EMASS to the path of the program, "
        f"or EMASS_LIBRARY to that of the library ({failed})"
    )


def _start(found: ctypes.CDLL) -> None:
    stanli = _program.environment().get("EMASS_STANLI")
    if stanli:
        os.environ.setdefault("EMASS_STANLI", stanli)
    _share_mpi()
    if "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized():
        mpi = sys.modules["mpi4py.MPI"]
        if not _is_running(found):
            raise Error(f"mpi4py uses another MPI than emass: {mpi.Get_library_version().splitlines()[0]}")
    before = _environment()
    _check(found, found.em_host_start())
    for name in _environment() - before - _READ_LATER:  # they would lead processes that this one starts astray
        found.unsetenv(name)
    atexit.register(found.em_host_stop)


def _environment() -> set[bytes]:
    """The names of the environment variables of the process now; os.environ has those of its start."""
    texts = ctypes.POINTER(c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found = itertools.takewhile(lambda text: text is not None, (texts[i] for i in itertools.count()))
    return {text.split(b"=", 1)[0] for text in found}


def _is_running(found: ctypes.CDLL) -> bool:
    running = c_int(0)
    found.MPI_Initialized(ctypes.byref(running))
    return bool(running.value)


def is_launched() -> bool:
    """Whether a launcher (mpirun, srun) started this process as one of several."""
    sizes = (os.environ.get(name, "") for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"))
    return any(size.isdigit() and int(size) > 1 for size in sizes)


def is_first() -> bool:
    """Whether this process is alone, or rank 0 of those that a launcher started."""
    ranks = (os.environ.get(name, "0") for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"))
    return not is_launched() or all(rank == "0" for rank in ranks)


def _check(found: ctypes.CDLL, status: int) -> None:
    if status >= 0:
        return
    text = _program.plainly(found.em_error_text().decode(errors="replace"))
    raise (Stopped if status == STOPPED else Error)(text, found.em_exit_status(status))


def fail_with(status: int, text: str) -> int:
    """em_fail, for functions that emass calls; returns the status."""
    return library().em_fail(status, b"%s", text.encode())


_ends: list[BaseException] = []  # exceptions of functions that emass calls, which a call of C cannot raise
_runs: list[Callable[[], None]] = []  # what stops the run that goes on


def end_by(error: BaseException) -> None:
    """Stops the run with a checkpoint; then `raising` raises the exception, such as KeyboardInterrupt or SystemExit."""
    _ends.append(error)
    for stop in _runs:
        stop()


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """A context that raises the first exception given to end_by, in place of any other that is raised in it. A run that a
    log density begins keeps those of the outer run."""
    if len(_runs) < 2:
        _ends.clear()
    try:
        yield
    except Error as error:
        if _ends:
            raise _ends[0] from error
        raise
    if _ends:
        raise _ends[0]


def last_error() -> str:
    """The text of the last error of libemass, em_error_text."""
    return library().em_error_text().decode(errors="replace")


def _texts(words: Sequence[str | None] | None) -> Any:
    if words is None:
        return None
    return (c_char_p * len(words))(*(word if word is None else word.encode() for word in words))


def _shape(shape: Sequence[int]) -> Any:
    return (c_int64 * len(shape))(*shape)


class Context:
    """A context of the ranks of a communicator, as a context manager; Collective over them.

    ranks: a communicator of mpi4py; None: all processes."""

    def __init__(self, ranks: Any = None) -> None:
        self._library = library()
        self._densities: list[c_void_p] = []
        self._say = _MESSAGE(lambda to, text: print(f"emass: {_program.plainly(text.decode(errors='replace'))}", file=sys.stderr))
        self._context = c_void_p()
        handle = -1 if ranks is None else ranks.py2f()
        _check(self._library, self._library.em_host_context(handle, self._say, None, ctypes.byref(self._context)))
        self.rank: int = self._library.em_host_rank(self._context)
        self.size: int = self._library.em_host_ranks(self._context)

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.em_context_destroy(ctypes.byref(self._context))
        for density in self._densities:
            self._library.em_density_destroy(ctypes.byref(density))

    def agree(self, error: BaseException | None = None) -> None:
        """Waits for all ranks. If one has an exception, all raise it."""
        status = 0
        if error is not None:
            exit_status = getattr(error, "status", 1)
            status = fail_with(-3 if exit_status == 2 else -4, str(error))
        _check(self._library, self._library.em_host_agree(self._context, status))

    def add(self, density: Any) -> None:
        """Adds a Density as a model, which a config then names."""
        made, call = c_void_p(), self._library
        _check(call, call.em_density_create(density.name.encode(), density.dim, density.fingerprint(), ctypes.byref(made)))
        self._densities.append(made)
        _check(call, call.em_density_compute(made, density.gradient, density.value, density.outputs_function, None))
        for i, name in enumerate(density.unconstrained or []):
            _check(call, call.em_density_name(made, i, name.encode()))
        for axis, labels in density.labels.items():
            _check(call, call.em_density_label_axis(made, axis.encode(), len(labels), _texts(labels)))
        for one in density.parameters:
            _check(
                call,
                call.em_density_add_parameter(
                    made, one.name.encode(), len(one.shape), _shape(one.shape), _texts(one.axes), *one.constraint()
                ),
            )
        for one in density.outputs:
            _check(
                call,
                call.em_density_add_output(
                    made, one.name.encode(), len(one.shape), _shape(one.shape), _texts(one.axes), one.group, one.storage
                ),
            )
        for group, one, values in density.data:
            shape = len(one.shape), _shape(one.shape), _texts(one.axes)
            _check(call, call.em_density_add_data(made, group.encode(), one.name.encode(), *shape, values.ctypes.data))
        _check(call, call.em_context_add_density(self._context, made))

    def run(self, config: str, path: str, mode: int, show: Callable[[str], None]) -> tuple[str, list[str]]:
        """Samples. config, path and mode are those of rank 0. `show` gets lines of the progress.
        Returns the file and a list of notes for the user. An interrupt, or SIGUSR1 or
        SIGTERM, stops with a checkpoint; a second one is raised when the run has stopped."""
        call, run = self._library, c_void_p()
        tell = _PROGRESS(lambda to, report: show(self._line(report)))
        _runs.append(lambda: call.em_context_interrupt(self._context))
        try:
            with raising(), _signals.caught(lambda number: call.em_context_interrupt(self._context)):
                _check(
                    call,
                    call.em_host_run(self._context, config.encode(), path.encode(), mode, tell, None, ctypes.byref(run)),
                )
                file = call.em_run_file(run).decode()
                _check(call, call.em_run_advance(run, 2**62))
            return file, self._notes(call.em_run_report(run))
        finally:
            _runs.pop()
            call.em_run_destroy(ctypes.byref(run))

    def _line(self, report: Any) -> str:
        line = ctypes.create_string_buffer(512)
        self._library.em_host_describe(report, len(line), line)
        return line.value.decode(errors="replace")

    def _notes(self, report: Any) -> list[str]:
        """The notes of the library, in the words of the program."""
        line, notes = ctypes.create_string_buffer(1024), []
        while self._library.em_host_note(report, len(notes), len(line), line):
            notes.append(_program.plainly(line.value.decode(errors="replace")))
        return notes
