#!/usr/bin/env python3
"""How often a run says *converged* and is wrong, beside Stan's NUTS held to the same limits.

    tests/bench/verdict.py EMASS [--seeds 20] [--first-seed 1] [--chains 4,8,16] [--only NAME]... [--tool both|emass|stan]
                           [--jobs 2] [--timeout 300] [--json FILE] [--markdown FILE]

The targets (verdict_targets.py) have known means, standard deviations and weights of modes. emass runs
with nothing but the model, and says of itself whether it converged (the attribute `verdict`). Stan's
NUTS runs as stanli has it by default, 1000 + 1000 iterations, diag_e, and is said to have converged where
R-hat is at most 1.01, bulk and tail ESS are at least 100 for each chain, no chain stood still and
at most 1 draw in 1,000 diverged; with warnings where one did, or the E-BFMI of a chain is below 0.3.
A run that failed, or took longer than --timeout seconds, has not converged.

*Converged*, with warnings or without, is false where a mean, an sd or a mode's weight is off by more than 5
Monte Carlo standard errors (MCSE), computed from the draws of the same run. Where all draws are in one
mode the MCSE of the weights is 0 and any miss counts, but of modes so light that fewer than 3
effective draws were due. On an improper target it is always false.

p is of Fisher's exact test, one-sided, of emass being wrong in more of its runs than Stan: the smallest
of those for each number of chains and for all together.
"""

import argparse
import collections
import hashlib
import importlib.metadata
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import arviz
import h5py
import numpy as np
import stanli
from scipy import stats

import forked
from posteriordb import bracketed, by_element
from verdict_targets import all_targets

R_HAT_LIMIT, ESS_LIMIT_PER_CHAIN, E_BFMI_LIMIT, DIVERGENCE_LIMIT = 1.01, 100, 0.3, 1e-3
Z_LIMIT = 5
FEWEST_DUE = 3
NEVER, CLEAN, WARNED = "not converged", "converged", "converged with warnings"
TOOLS = "emass", "stan"

Task = collections.namedtuple("Task", "tool target chains seed key")


# ---- running ----

def run_emass(emass, target, chains, seed):
    """(draws, what the run says of itself)"""
    with tempfile.TemporaryDirectory() as folder:
        config, data, output = (pathlib.Path(folder, name) for name in ("run.yaml", "data.json", "run.h5"))
        data.write_text(target.data)
        config.write_text(f"model: {{name: stan, program: {target.program}, data: {data}}}\n")
        done = subprocess.run([emass, "run", config, "--output", output, "--quiet", "--chains", str(chains),
                               "--seed", str(seed)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"status {done.returncode}: {(done.stderr.strip().splitlines() or ['nothing said'])[-1]}")
        with h5py.File(output) as file:
            draws = {}
            for name, values in file["posterior"].items():
                if values.ndim >= 2 and values.dtype.kind == "f":
                    draws.update(by_element(name, np.asarray(values)))
            verdict = file.attrs["verdict"]
            return draws, verdict if isinstance(verdict, str) else verdict.decode()


def read_verdict(text):
    """The first words of emass' verdict."""
    start = text.strip().lower()
    return WARNED if start.startswith("converged with") else CLEAN if start.startswith("converged") else NEVER


def run_stan(target, chains, seed):
    """(draws, share of draws that diverged, smallest E-BFMI)"""
    model = stanli.Model(stan_code=target.program.read_text(), data=target.data)
    fit = model.sample(chains=chains, seed=seed, refresh=0, parallel_chains=1)
    column = {name: fit.sampler_stats[:, :, i] for i, name in enumerate(stanli.SAMPLER_COLUMNS)}
    energy = column["energy__"]
    e_bfmi = (np.diff(energy, axis=1) ** 2).mean(axis=1) / energy.var(axis=1)
    return {bracketed(name): fit.draws(name) for name in fit.names}, column["divergent__"].mean(), e_bfmi.min()


# ---- judging ----

def worst_numbers(draws):
    """(largest R-hat, smallest of bulk and tail ESS); NaN counts as worse than any number."""
    r_hat = [float(arviz.rhat(x)) for x in draws.values()]
    ess = [min(float(arviz.ess(x)), float(arviz.ess(x, method="tail"))) for x in draws.values()]
    return (math.inf if np.isnan(r_hat).any() else max(r_hat)), (0.0 if np.isnan(ess).any() else min(ess))


def verdict_of(draws, divergent, e_bfmi):
    """What the limits say, in the words of emass."""
    r_hat, ess = worst_numbers(draws)
    chains = len(next(iter(draws.values())))
    still = np.all([np.ptp(x, axis=1) == 0 for x in draws.values()], axis=0).any()
    if not (r_hat <= R_HAT_LIMIT and ess >= ESS_LIMIT_PER_CHAIN * chains and divergent <= DIVERGENCE_LIMIT) or still:
        said = NEVER
    else:
        said = WARNED if divergent > 0 or not e_bfmi >= E_BFMI_LIMIT else CLEAN
    return (f"{said}: worst R-hat {r_hat:.3f}, smallest ESS {ess:.0f}, smallest E-BFMI {e_bfmi:.2f}, "
            f"{100 * divergent:.2g} % divergent")


def deviation(miss, mcse):
    """In MCSE; at most 1e6, which stands for no Monte Carlo error at all."""
    return min(1e6, abs(miss) / mcse) if mcse > 0 else 0.0 if abs(miss) < 1e-9 else 1e6


def deviations(target, draws):
    """(z, of what) for all that is known of a target."""
    if target.improper:
        yield 1e6, "improper"
        return
    least_ess = min(float(arviz.ess(x, method="mean")) for x in draws.values())
    values = draws | (target.derive(draws) if target.derive else {})
    for name, (mean, sd) in target.moments.items():
        x = values[name]
        yield deviation(x.mean() - mean, float(arviz.mcse(x))), f"mean of {name}"
        if sd is not None:
            yield deviation(x.std() - sd, float(arviz.mcse(x, method="sd"))), f"sd of {name}"
    if not target.memberships:
        return
    for k, (weight, member) in enumerate(zip(target.weights, target.memberships(draws))):
        due = least_ess * (1 - weight if member.mean() > 0.5 else weight)
        if np.ptp(member.round()) > 0 or due >= FEWEST_DUE:
            yield deviation(member.mean() - weight, float(arviz.mcse(member))), f"weight of mode {k + 1}"


def judge(options, task):
    """What one run says and how far off it is."""
    target = task.target
    if task.tool == "emass":
        draws, verdict = run_emass(options.emass, target, task.chains, task.seed)
    else:
        draws, divergent, e_bfmi = run_stan(target, task.chains, task.seed)
        verdict = verdict_of(draws, divergent, e_bfmi)
    z, worst = max(deviations(target, draws))
    return {"said": read_verdict(verdict), "z": round(z, 2), "worst": worst, "verdict": verdict}


# ---- what was kept of earlier runs: one line of JSON each ----

def tool_digest(options, tool):
    """Another build of emass, or another release of stanli, is another tool."""
    if tool == "emass":
        return hashlib.sha256(pathlib.Path(options.emass).read_bytes()).hexdigest()[:12]
    return importlib.metadata.version("stanli")


def load(path):
    """Results by key. A line that an interruption cut short is left out."""
    kept = {}
    if path and path.exists():
        for line in path.read_text().splitlines():
            try:
                result = json.loads(line)
                kept[result["key"]] = result
            except (ValueError, KeyError):
                print(f"{path}: left out a line that is no result: {line[:60]}", file=sys.stderr)
    return kept


def keep(path, result):
    if path:
        with path.open("a") as file:
            file.write(json.dumps(result) + "\n")


# ---- the table ----

class Cell:
    """What the runs of one tool on one target with so many chains came to."""

    def __init__(self, results=()):
        self.runs = len(results)
        said = [r for r in results if r["said"] != NEVER]
        self.said = len(said)
        self.false = sum(r["z"] > Z_LIMIT for r in said)
        self.failed = sum(r["z"] is None for r in results if r["said"] == NEVER)

    def __add__(self, other):
        total = Cell()
        for name in ("runs", "said", "false", "failed"):
            setattr(total, name, getattr(self, name) + getattr(other, name))
        return total

    def __str__(self):
        return f"{self.said}, {self.false}" + (f" ({self.failed} failed)" if self.failed else "")


def p_value(ours, theirs):
    """That emass is falsely converged in more of its runs than Stan by chance alone."""
    return stats.fisher_exact([[ours.false, ours.runs - ours.false], [theirs.false, theirs.runs - theirs.false]],
                              alternative="greater").pvalue


def write_table(cells, names, chains, tools, out):
    """cells: {(tool, name, chains): Cell}"""
    def line(*row):
        print("| " + " | ".join(row) + " |", file=out)

    def add(title, of):
        row = [str(of[tool, c]) for tool in tools for c in chains]
        if len(tools) == 2:
            sums = [sum((of[tool, c] for c in chains), Cell()) for tool in tools]
            p = [p_value(of["emass", c], of["stan", c]) for c in chains] + [p_value(*sums)]
            row.append(f"**{min(p):.2g}**" if min(p) < 0.01 else f"{min(p):.2g}")
        line(title, *row)

    both = len(tools) == 2
    line("converged, of these falsely", *(f"{'Stan' if tool == 'stan' else tool}, {c}" for tool in tools for c in chains),
         *["p"] * both)
    line("---", *["--:"] * (len(tools) * len(chains) + both))
    for name in names:
        add(name, {(tool, c): cells[tool, name, c] for tool in tools for c in chains})
    total = {(tool, c): sum((cells[tool, name, c] for name in names), Cell()) for tool in tools for c in chains}
    add("all", total)
    for tool in tools:
        whole = sum((total[tool, c] for c in chains), Cell())
        print(f"\n{'Stan' if tool == 'stan' else tool}: {whole.runs} runs, {whole.said} said to have converged, "
              f"{whole.false} of them falsely, {whole.failed} failed.", file=out)


# ---- all of it ----

def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emass")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--chains", type=lambda text: [int(c) for c in text.split(",")], default=[4, 8, 16])
    parser.add_argument("--only", action="append", help="targets whose name begins so")
    parser.add_argument("--tool", choices=["both", *TOOLS], default="both")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that a run may take")
    parser.add_argument("--json", type=pathlib.Path, help="keeps what was measured; what stands there is not run again")
    parser.add_argument("--markdown", type=argparse.FileType("w"), default=sys.stdout)
    return parser.parse_args(arguments)


def make_task(tool, build, target, chains, number):
    seed = target.seed(chains, number)
    return Task(tool, target, chains, seed, f"{tool} {build}, {target.name} ({target.digest()}), {chains} chains, seed {seed}")


def measure(options, tasks, results):
    """Runs what is not among the results yet, and adds it."""
    missing = [task for task in tasks if task.key not in results]
    for i, (task, result, error) in enumerate(forked.each(lambda task: judge(options, task), missing, options.jobs,
                                                          options.timeout)):
        result = {"key": task.key} | (result or {"said": NEVER, "z": None, "worst": "", "verdict": f"failed: {error}"})
        results[task.key] = result
        if not error:  # a failure is tried again by the next call
            keep(options.json, result)
        if error or (result["said"] != NEVER and result["z"] > Z_LIMIT):
            print(f"{i + 1} of {len(missing)}: {task.tool}, {task.target.name}, {task.chains} chains, seed {task.seed}: "
                  f"{result['verdict']}" + ("" if error else f"; but {result['worst']} is off by {result['z']:.3g} MCSE"),
                  file=sys.stderr, flush=True)


def main():
    options = parse(sys.argv[1:])
    warnings.filterwarnings("ignore")
    os.environ.setdefault("EMASS_STANLI", str(pathlib.Path(stanli.__file__).with_name("_bin") / "libstanli.so"))
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of emass; a run has one core
    targets = [t for t in all_targets() if not options.only or t.name.startswith(tuple(options.only))]
    if not targets:
        sys.exit(f"verdict.py: no target begins with any of {options.only}: expected one of "
                 + "; ".join(t.name for t in all_targets()))
    tools = TOOLS if options.tool == "both" else (options.tool,)
    build = {tool: tool_digest(options, tool) for tool in tools}
    tasks = [make_task(tool, build[tool], target, chains, number) for target in targets for chains in options.chains
             for number in range(options.first_seed, options.first_seed + options.seeds) for tool in tools]
    results = load(options.json)
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder  # what a run that is ended leaves behind goes with it
        measure(options, tasks, results)
    cells = collections.defaultdict(list)
    for task in tasks:
        cells[task.tool, task.target.name, task.chains].append(results[task.key])
    write_table({key: Cell(of) for key, of in cells.items()}, [t.name for t in targets], options.chains, tools,
                options.markdown)


if __name__ == "__main__":
    main()
