#!/usr/bin/env python3
"""Draws and figures of the Python package with ArviZ 0.x, and with 1.x, whose draws are a DataTree: emass.read,
summary, loo, and each emass.plot_*. TAP; $1: the build."""
import json
import os
import re
import sys
import tempfile
import warnings

import lib
from lib import report, skip

lib.needs_packages("figures of the Python package")
SCRIPT = os.path.abspath(__file__)
ARVIZ_1 = os.path.join(lib.ROOT, "build", "arviz1")
CONFIGS = {
    "schools": {"model": {"name": "eight_schools", "log_likelihood": True}, "run": {"chains": 3, "draws": 100},
                "output": {"file": "schools.h5"}},
    "tempered": {"model": {"name": "eight_schools"}, "temper": {}, "run": {"chains": 2, "warmup": 40, "draws": 20},
                 "output": {"file": "tempered.h5"}},
}


def drawn(name, found, expected):
    """Whether a figure has ink, and what it says has all that is expected."""
    import matplotlib.pyplot as plt

    plt.gcf().savefig("figure.png", dpi=40)
    pixels = plt.imread("figure.png")[..., :3]
    said = " ".join(text.get_text() for text in plt.gcf().findobj(lambda one: hasattr(one, "get_text")))
    plt.close("all")
    fine = (pixels < 0.9).any(axis=2).mean() > 0.005 and all(text in said for text in expected)
    return [bool(fine), f"plot_{name}", said[:400], str(type(found))]


def checks():
    """In a process of its own: [fine, what, notes...] of each test."""
    sys.path.insert(0, os.path.join(lib.ROOT, "analysis"))
    import arviz
    import emass
    import matplotlib

    matplotlib.use("Agg")
    warnings.simplefilter("ignore")
    draws, old = emass.read("schools.h5"), arviz.__version__.startswith("0.")
    yield [type(draws).__name__ == ("InferenceData" if old else "DataTree") and draws.posterior.theta.shape == (3, 100, 8)
           and draws.attrs["verdict"] != "", "emass.read", str(type(draws))]
    os.rename("schools.h5", "moved.h5")
    yield [float(draws["posterior"].theta.mean()) != 0, "in memory: the file may go"]
    os.rename("moved.h5", "schools.h5")
    yield [emass.summary(draws, "mu").equals(emass.summary("schools.h5", "mu")), "emass.summary of draws in memory"]
    loo = emass.loo(draws)
    said = lib.limited(lib.EMASS, "loo", "schools.h5").stdout
    yield [abs(float(re.search(r"elpd_loo (\S+)", said)[1]) - (loo.elpd_loo if old else loo.elpd)) < 0.1, "emass.loo", str(loo), said]
    again = emass.Model.built_in("eight_schools").sample(chains=2, draws=30, warmup=20, progress=False)
    yield [again.posterior.mu.shape == (2, 30) and type(again) is type(draws), "sample returns the same kind", str(type(again))]
    worst = max(((float(arviz.rhat(values)), name) for name, values in emass.plots.elements(draws.posterior).items()))[1]
    for name, expected in {"trace": [worst], "rank": [worst], "ess": [worst], "pair": [worst], "forest": ["tau", "theta[Mt. Hermon]"],
                           "energy": [], "khat": [], "mass": ["largest"], "steps": ["step size", "acceptance"]}.items():
        yield drawn(name, getattr(emass, f"plot_{name}")(draws), expected)
    yield drawn("trace", emass.plot_trace("schools.h5", ["theta[[]C*", "mu"]), ["theta[Choate]", "mu"])
    yield drawn("tempering", emass.plot_tempering("tempered.h5"), ["rejection", "log evidence by leg"])
    for what, call in {"nothing in the posterior is called nu": lambda: emass.plot_trace(draws, "nu"),
                       "found no tempering/round_log_evidence": lambda: emass.plot_tempering(draws)}.items():
        try:
            call()
            yield [False, what]
        except emass.Error as error:
            yield [what in str(error), what, str(error)]


def main():
    for name, config in CONFIGS.items():
        with open(f"{name}.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        lib.limited(lib.EMASS, "run", f"{name}.json", "--quiet")
    for version, path in {"0": "", "1": ARVIZ_1}.items():
        if path and not os.path.exists(os.path.join(path, "ready")):
            skip("figures by ArviZ 1", "no build/arviz1: make build/arviz1/ready")
            continue
        env = dict(os.environ, PYTHONPATH=path, EMASS=lib.EMASS, EMASS_LIBRARY=os.path.join(lib.BUILD, "libemass.so.0"))
        ran = lib.limited(sys.executable, SCRIPT, lib.BUILD, "--checks", env=env)
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]
        for fine, what, *notes in lines:
            report(fine, f"ArviZ {version}: {what}", *notes)
        report(ran.returncode == 0 and len(lines) == 18, f"ArviZ {version}: all of them", ran.stderr[-2000:])


if "--checks" in sys.argv:
    for line in checks():
        print(json.dumps(line, default=bool), flush=True)
    sys.exit(0)
with tempfile.TemporaryDirectory(prefix="emass-plots-") as work:
    os.chdir(work)
    main()
lib.finish()
