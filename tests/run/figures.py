#!/usr/bin/env python3
"""analysis/plot.py on a file of ours, on one that others wrote, and on what is no file of draws; and
make papers, in small: runs are done once, and the page has their numbers and figures. TAP; $1: the
build. One process does it all, for the packages take long to import."""
import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile
from dataclasses import replace
from unittest import mock

import lib

lib.needs_packages("figures")

import arviz  # noqa: E402
import matplotlib.image  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, os.path.join(lib.ROOT, "analysis"))
import plot  # noqa: E402
from papers import __main__ as papers  # noqa: E402
from papers import paper_networks  # noqa: E402
from papers.measure import Density, bias, one_peak, rmse, spread  # noqa: E402
from papers.page import Page  # noqa: E402
from papers.runs import Run, read_runs  # noqa: E402
from papers.verdict import Claim, Estimate, apart, below, in_pairs, of_kl, of_mean, of_runs, verdict  # noqa: E402

HMC = r"\| HMC \| 0\.0196 \| 0\.0197( \| -?[0-9.e-]+){10} \| [0-9]+ of [0-9]+ \|"
RHMC = r"\| RHMC \| 0\.0111 \| 0\.0089( \| -){11} \|"
FIGURES = ["002_fig2_right", "003_fig3", "004_fig1"]
RUNS = ["000/normal/reference", "000/normal/hmc", "000/normal/as-printed/hmc", "002/banana/*/0.05",
        "000/time/synthetic/hmc", "003/density/sghmc", "003/correlated/*", "004/well/*/0.1"]


def call(module, *arguments):
    """main() of a script with these arguments: None, or what it ends with; and what it prints."""
    status, said, before = None, io.StringIO(), sys.argv
    sys.argv = [module.__file__, *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            module.main()
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv = before
    return status, said.getvalue()


def is_picture(path):
    """A picture of a kind: PNG, of a size, and not of one colour."""
    pixels = matplotlib.image.imread(path)
    ink = (pixels[..., :3] < 0.9).any(axis=2).mean()
    return min(pixels.shape[:2]) > 300 and 0.02 < ink < 0.9


def check_plot(folder):
    ours, theirs = os.path.join(folder, "ours.h5"), os.path.join(folder, "theirs.h5")
    run = lib.limited(lib.EMASS, "run", os.path.join(lib.ROOT, "jobs/eight_schools.yaml"), "--set",
                      "run.warmup=300", "--set", "run.draws=200", "--output", ours)
    lib.report(run.returncode == 0, "emass writes a file", run.stderr)
    status, said = call(plot, ours)
    lib.report(not status and is_picture(os.path.join(folder, "ours.png")), "a figure of it", status, said)

    draws = np.random.default_rng(1).normal(size=(3, 200, 2))
    arviz.from_dict(posterior={"x": draws, "y": draws[..., 0]}).to_netcdf(theirs)
    picture = os.path.join(folder, "x.png")
    status, said = call(plot, theirs, "--var", "x*", "-o", picture)
    lib.report(not status and is_picture(picture), "a figure of chosen variables of ArviZ's", status, said)
    status, _ = call(plot, theirs, "--var", "nothing")
    lib.report("called nothing" in str(status), "an unknown variable is an error", status)
    status, _ = call(plot, os.path.join(lib.ROOT, "Makefile"))
    lib.report("not a file of draws" in str(status), "so is a file of something else", status)


def check_measures():
    """What the measures say of draws whose law is known."""
    exact = np.random.default_rng(1).normal(size=(4, 50000))
    truth = Density(one_peak, -6, 6, 60)
    lib.report(abs(truth.mass.sum() - 1) < 1e-12, "a density's mass")
    # Binned KL of N(0, 1.2^2) from N(0, 1): ln(1 / 1.2) + (1.2^2 - 1) / 2, to the bins and the noise.
    lib.report(abs(truth.kl(1.2 * exact) - (0.22 - np.log(1.2))) < 0.002
               and truth.kl(exact) < 60 / 2e5 * 2 and truth.kl(exact + 20) == np.inf, "KL")
    lib.report(abs(spread(2 * exact, exact) - 2) < 1e-12 and abs(bias(exact + 1, exact) - 1) < 0.01
               and abs(rmse(exact + 3, 0) - np.sqrt(10)) < 0.02, "spread, bias, RMSE")


def check_verdicts():
    """Claims that hold, that do not, and that nobody can tell; in the right number of standard errors."""
    random = np.random.default_rng(2)
    exact, moved = random.normal(size=(4, 5000)), random.normal(size=(4, 5000)) + 0.1
    z = below(of_mean(exact), of_mean(moved))  # 0.1 of sqrt(2 / 20000), give or take 1
    same = [apart((of_mean(x[:1]), of_mean(x[1:]))) for x in random.normal(size=(200, 2, 400))]
    lib.report(abs(z - 10) < 4 and 0.6 < np.mean(np.square(same)) < 1.5, "standard errors", z, np.mean(np.square(same)))
    truth = Density(one_peak, -6, 6, 60)
    kl = [of_kl(truth, random.normal(size=(4, 2000))) for _ in range(40)]
    ratio = np.mean([k.error for k in kl]) / np.std([k.value for k in kl])
    lib.report(0.6 < ratio < 1.9, "the standard error of a KL divergence", ratio)
    seeds = random.normal(size=10)
    z_pairs = in_pairs(seeds + random.normal(size=10) / 100, np.append(seeds + 0.1, 99.0))  # 0.1 of 0.01 / sqrt(10)
    lib.report(10 < z_pairs < 99 and np.isnan(in_pairs([1.0, np.nan], [2.0, 2.0])), "runs in pairs", z_pairs)
    line = verdict(Claim("Lower", {"a": z, "b": -z, "c": 1.0, "d": below(of_runs([1.0]), of_runs([2.0, 3.0]))}),
                   Claim("Equal", {"": 1.0}, equal=True), Claim("Nothing", {}))
    lib.report(re.fullmatch(r"Lower: yes a \(\S+\); undecided c \(1.0\); the opposite b \(-\S+\)\. "
                            r"Equal: yes \(1.0\)\.", line), "a verdict", line)
    with mock.patch.object(paper_networks, "final", lambda ends, name: ends.get(name)):
        ends = {"a": Estimate(98.1), "b": Estimate(98.5), "c": Estimate(97.9)}
        line = paper_networks.reached(ends, [(name, name.upper(), 98.2) for name in "abcd"] + [("a", "X", None)])
    lib.report(line == "Within 0.2 points of the paper's number: A, 98.10 for 98.20. Better by more: B, 98.50 for 98.20. "
                       "Worse by more: C, 97.90 for 98.20.", "how near the paper's number", line)


def page_is_whole(folder):
    """The paper's numbers and ours of a sampler that was run, dashes for one that was not, and every
    figure it shows."""
    with open(os.path.join(folder, "papers.md")) as file:
        page = file.read()
    with open(os.path.join(folder, "papers.html")) as file:
        html = file.read()
    if len(re.findall(r"^\*\*Verdict\.\*\* \S", page, re.M)) != html.count('<p class="verdict">') or "**Verdict.**" not in page:
        yield "verdicts"
    with open(os.path.join(folder, "runs/000/time/synthetic/hmc.times")) as file:
        if len(file.read().split()) != 2 or not os.path.exists(os.path.join(folder, "numpy.json")):
            yield "times"
    empty = re.findall(r"^(#+) .*\n+(?=#{2,3} )", page, re.M)
    if "Not run." in page or "for want of" in page or [level for level in empty if level == "###"] or "a9a" in page.split("## Not run")[0]:
        yield "sections of nothing"
    if "All runs were made." not in page:
        yield "that nothing is left out"
    yield from (line for line in (HMC, RHMC) if not re.search(f"^{line}$", page, re.M))
    for name in FIGURES:
        picture = os.path.join(folder, f"{name}.png")
        if f"]({name}.png)" not in page or f'src="{name}.png"' not in html or not is_picture(picture):
            yield name


def stamps(folder):
    """Every file of draws as it is: finished runs are not run again."""
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return sorted((f, os.stat(f).st_mtime_ns, os.stat(f).st_ino) for f in files if f.endswith(".h5"))


def check_left_out(folder):
    """One list of what was not run, by reasons; and no heading of what is not there."""
    page = Page("x", pathlib.Path(folder))
    page.contents()
    page.heading("A")
    page.heading("A1", 3)
    page.leave_out()
    page.heading("B")
    page.heading("B1", 3)
    page.leave_out()
    page.heading("B2", 3)
    page.say("words")
    runs = [Run(name, None, [], None, why) for name, why in
            (("1/a/x", papers.TO_BE_RUN), ("1/a/y", papers.TO_BE_RUN), ("1/b", ""), ("2/c", "needs here/d"),
             ("2/e", papers.TO_BE_RUN), ("3/f", "status 1"))]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        papers.say_left_out(page, runs)
    page.write("left_out")
    text = pathlib.Path(folder, "left_out.md").read_text()
    lines = re.findall(r"^- (\d+ run.*)$", text, re.M)
    lib.report(re.findall("^#.*$", text, re.M) == ["# x", "## B", "### B2", "## Not run"] and len(lines) == 3
               and "3 runs not made, or not at their end: `1/a/*`, `2/e`." in lines and "for want of `here/d`" in text
               and "1 run failed, status 1: `3/*`." in lines and "here/d" in said.getvalue(), "what was not run, in one list", text)


def check_papers(folder):
    def make(*runs):
        only = [word for run in runs for word in ("--only", run)]
        return call(papers, lib.BUILD, "--folder", folder, "--shorten", "100", *only)

    status, said = make(*RUNS)
    lib.report(status == 0, "a shortened set of runs, and their page", status, said)
    missing = list(page_is_whole(folder))
    lib.report(not missing, "the page has all numbers and figures", *missing)
    before = stamps(folder)
    with open(os.path.join(folder, "runs/000/normal/hmc.asked"), "r+") as file:
        asked = file.read()
        file.seek(0)
        file.write("# another comment\n" + asked)
    status, said = make(*RUNS)
    lib.report(status == 0 and before and before == stamps(folder), "again: nothing is run twice", said)
    run = read_runs(pathlib.Path(folder), ["000/normal/hmc"], 100)[0]
    moved = replace(run, settings=[*run.settings, "run.seed=7"])
    lib.report(run.is_as_asked() and not moved.is_as_asked(), "a run of other settings is not shown as one of these")
    with open(os.path.join(folder, "linear.h5"), "w") as file:
        file.write("spoilt\n")
    status, said = make("003/time/with-data")
    lib.report(status == 1 and re.search("papers: 003/time/with-data: .*linear.h5", said),
               "a run that fails is named", status, said)


with tempfile.TemporaryDirectory(prefix="emass-figures-") as work:
    check_plot(work)
    check_measures()
    check_verdicts()
    check_left_out(work)
    check_papers(os.path.join(work, "papers"))
lib.finish()
