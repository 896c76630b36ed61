"""For the Python tests of this folder, which are given the build: TAP lines, and commands that end."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.path.join(ROOT, "analysis", "venv", "bin", "python")
BUILD = os.path.abspath(sys.argv[1])
EMASS = os.path.join(BUILD, "emass")
os.environ["PATH"] = subprocess.run([os.path.join(ROOT, "tests", "launcher"), BUILD], capture_output=True, text=True,
                                    check=True).stdout.strip() + os.environ["PATH"]  # of a build with another MPI
LIMIT = os.environ.get("EMASS_LIMIT", "900")
SUMMARY_COLUMNS = "mean mcse_mean sd 5% 50% 95% ess_bulk ess_tail r_hat".split()  # of `emass summary`
results = []


def prefer_packages():
    """Goes on in the Python of analysis/venv, if there is one."""
    if os.path.exists(PYTHON) and os.path.dirname(PYTHON) != os.path.join(sys.prefix, "bin"):
        os.execv(PYTHON, [PYTHON] + sys.argv)


def needs_packages(what):
    """The same; without one, `what` is skipped."""
    if not os.path.exists(os.path.join(ROOT, "analysis", "venv", "ready")):
        skip(what, "no analysis/venv: make analysis/venv/ready")
        finish()
    prefer_packages()


def needs_front_ends(what):
    """Goes on in the Python of build/python-venv, which has PyMC, JAX, numba and polars; without it, `what` is skipped."""
    python = os.path.join(ROOT, "build", "python-venv", "bin", "python")
    if not os.path.exists(os.path.join(ROOT, "build", "python-venv", "ready")):
        skip(what, "no build/python-venv: make build/python-venv/ready")
        finish()
    if os.path.dirname(python) != os.path.join(sys.prefix, "bin"):
        os.execv(python, [python] + sys.argv)
    # PyTensor does not remove the files that it compiles.
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)


def use_package():
    """`import emass` is from now on that of this tree, with the program and the library of the build. Without warnings."""
    warnings.simplefilter("ignore")
    os.environ["EMASS"] = EMASS
    os.environ["EMASS_LIBRARY"] = os.path.join(BUILD, "libemass.so.0")
    sys.path.insert(0, os.path.join(ROOT, "analysis"))


def said(call, kind=None):
    """The message of the error that a call raises, of emass.Error by default."""
    import emass

    try:
        call()
    except kind or emass.Error as error:
        return str(error)
    return "no error"


def report(fine, what, *notes):
    """A test, and what is said if it failed."""
    results.append(bool(fine))
    print("ok" if fine else "not ok", len(results), "-", what, flush=True)
    for line in [] if fine else "\n".join(map(str, notes)).splitlines():
        print("#", line, flush=True)


def skip(what, why):
    results.append(True)
    print(f"ok {len(results)} - {what} # SKIP {why}", flush=True)


def limited(*command, **options):
    """The command, done; one that hangs has exit status 124."""
    return subprocess.run(["timeout", "-k", "10", LIMIT, *map(str, command)], capture_output=True,
                          text=True, **options)


def finish():
    print(f"1..{len(results)}")
    sys.exit(0 if all(results) else 1)


def report_data(path):
    """What a page of emass report is drawn from."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])


def drawn_report(path):
    """The body that the script of such a page makes; None: there is no interpreter for it."""
    engine = shutil.which("duk") or shutil.which("node")
    if not engine:
        return None
    with open(path, encoding="utf-8") as file:
        text = file.read()
    data = text.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    script = text.split("<script>\n")[1].split("</script>")[0]
    say = "print" if engine.endswith("duk") else "console.log"
    with open("draw.js", "w", encoding="utf-8") as file:
        file.write(f"{script}\n{say}(page({data}));\n")
    ran = limited(engine, "draw.js")
    return ran.stdout if ran.returncode == 0 else ran.stderr
