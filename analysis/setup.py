"""What pip installs beside the package. pyproject.toml has the rest.

    in a clone                  the package alone
    in what `make sdist` packs  the program and the library too, built here by the Makefile
    there, EMASS_WHEEL=FOLDER   instead of that, what `make wheel` has built into this folder (jobs/wheel/build)
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
BUILT = os.environ.get("EMASS_WHEEL", "")
IS_SOURCE = (HERE / "Makefile").exists()

# What is included from where, and Debian's package of it. The Makefile knows where pkg-config finds them.
HEADERS = {
    "mpi.h": "libopenmpi-dev or libmpich-dev",
    "hdf5.h": "libhdf5-openmpi-dev or libhdf5-mpich-dev",
    "cblas.h": "libopenblas-dev",
    "lapacke.h": "liblapacke-dev",
    "yaml.h": "libyaml-dev",
    "popt.h": "libpopt-dev",
    "sleef.h": "libsleef-dev",
    "Random123/philox.h": "librandom123-dev",
    "zlib.h": "zlib1g-dev",
    "lzma.h": "liblzma-dev",
    "xxhash.h": "libxxhash-dev",
    "utf8proc.h": "libutf8proc-dev",
    "jansson.h": "libjansson-dev",
}
PARALLEL = "#if !defined H5_HAVE_PARALLEL\n#error HDF5 without MPI\n#endif\n"


def missing() -> list[str]:
    """What the build needs and this machine has not."""
    mpicc = os.environ.get("MPICC", "mpicc")
    commands = {"make": "make", "pkg-config": "pkg-config", mpicc: "libopenmpi-dev or libmpich-dev", "cc": "gcc"}
    lacks = [f"{command} ({package})" for command, package in commands.items() if not shutil.which(command)]
    if lacks:  # without them nobody knows which headers are there
        packages = [package for package in HEADERS.values() if package not in commands.values()]
        return [*lacks, f"and perhaps {', '.join(packages)}"]
    with tempfile.TemporaryDirectory() as folder:
        if not compiles(folder, ""):
            return [f"a compiler that {mpicc} can start (gcc; or what OMPI_CC or MPICH_CC names)"]
        for header, package in HEADERS.items():
            parallel = PARALLEL if header == "hdf5.h" else ""
            if not compiles(folder, f"#include <{header}>\n{parallel}"):
                lacks.append(f"{'parallel HDF5' if parallel else header} ({package})")
    return lacks


def compiles(folder: str, text: str) -> bool:
    """With the Makefile's own flags, which name the folders of headers."""
    Path(folder, "probe.c").write_text(f"{text}int main(void) {{ return 0; }}\n")
    rule = f"probe:\n\t$(CC) $(ALL_CFLAGS) -fsyntax-only {folder}/probe.c"
    return make(f"B={folder}", "--silent", f"--eval={rule}", "probe", stderr=subprocess.DEVNULL) == 0


def make(*words: str, **more) -> int:
    """Its exit status."""
    environ = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # of a make that called pip
    settings = [f"COMMIT={(HERE / 'COMMIT').read_text().strip()}", f"MPICC={os.environ.get('MPICC', 'mpicc')}"]
    return subprocess.run(["make", "-C", HERE, *settings, *words], env=environ, check=False, **more).returncode


class BuildProgram(build_py):
    """Puts the program and the library into the package."""

    def run(self) -> None:
        if IS_SOURCE and not BUILT and (lacks := missing()):
            sys.exit(f"emass cannot be built: missing (Debian's packages in brackets) {', '.join(lacks)}")
        super().run()
        folder = Path(self.build_lib, "emass", "_bin")
        if not IS_SOURCE:
            return
        if BUILT:
            shutil.copytree(BUILT, folder, dirs_exist_ok=True)
        else:
            self.build_program(folder / "local")
        shutil.copytree(HERE / "include", folder / "include", dirs_exist_ok=True)

    def build_program(self, folder: Path) -> None:
        build = Path(self.build_lib).resolve().parent / "program"
        if make(f"B={build}", f"-j{os.cpu_count() or 1}", "all"):
            sys.exit("emass cannot be built: what make said is above")
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("emass", "libemass.so.0"):
            shutil.copy2(build / name, folder / name)


class PlatformWheel(bdist_wheel):
    """With the program a wheel is one of this platform, and of any Python."""

    def get_tag(self) -> tuple[str, str, str]:
        if not IS_SOURCE:
            return super().get_tag()
        return "py3", "none", sysconfig.get_platform().replace("-", "_").replace(".", "_")


class PlatformDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return IS_SOURCE


setup(
    cmdclass={"build_py": BuildProgram, "bdist_wheel": PlatformWheel},
    distclass=PlatformDistribution,
    scripts=["bin/emass"] if IS_SOURCE else [],
)
