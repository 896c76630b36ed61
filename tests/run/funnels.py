#!/usr/bin/env python3
"""Funnels and centred hierarchies, whose log scale has a known law.

v ~ N(0, sd^2), x_i ~ N(0, e^v): Neal's funnel. With data y_i ~ N(x_i, 1) it is a hierarchy, and v has the density
N(v; 0, sd^2) prod N(y_i; 0, e^v + 1), which is integrated here. At least 9 of 10 seeds have to converge; rounding, and
with it the draws, depend on the processor. Of those that do, mean and standard deviation of v have to be within 4.5
Monte Carlo standard errors: of 100 numbers one exceeds that by chance in 1,500 runs. The broken twin, the law of
another sd, must fail the same bound.
"""
import csv
import io
import math
import os
import pathlib
import subprocess
import sys
import tempfile

EMASS = os.path.abspath(os.path.join(sys.argv[1], "emass"))
INCLUDE = os.path.abspath("include")
SECONDS = int(os.environ.get("EMASS_LIMIT", "900"))
LIMIT, SEEDS = 4.5, range(1, 11)
PLUGIN = r"""
#include <emass/plugin.h>
#include <math.h>
enum { N = %d, DATA = %d };
static const double y[] = {%s}, sd = %g;
static em_status density(const void *given, const double *q, double *log_p, double *gradient)
{
    const double v = q[0], precision = exp(-v);
    (void)given;
    *log_p -= v * v / (2 * sd * sd) + N * v / 2;
    gradient[0] -= v / (sd * sd) + N / 2.0;
    for (int i = 0; i < N; i++) {
        const double x = q[1 + i], error = DATA ? y[i] - x : 0;
        *log_p -= precision * x * x / 2 + error * error / 2;
        gradient[0] += precision * x * x / 2;
        gradient[1 + i] -= precision * x - error;
    }
    return EM_OK;
}
EMASS_PLUGIN({.name = "funnel", .dim = N + 1, .log_density_gradient = density});
"""
Y = [0.3, -0.8, 1.1, 0.2, -1.4, 0.6, -0.1, 0.9]
TARGETS = {"funnel, 2 dimensions": (1, [], 3), "funnel, 10 dimensions": (9, [], 3),
           "funnel, 100 dimensions": (99, [], 3), "hierarchy of 8": (8, Y, 2),
           "hierarchy of 50": (50, [Y[i % 8] for i in range(50)], 2)}


def law(y, sd):
    """Mean and standard deviation of v."""
    grid = [sd * (k / 1000 - 8) for k in range(16001)]
    log_p = [-v * v / (2 * sd * sd) - sum(math.log(math.exp(v) + 1) + t * t / (math.exp(v) + 1) for t in y) / 2
             for v in grid]
    most = max(log_p)
    weight = [math.exp(p - most) for p in log_p]
    total = math.fsum(weight)
    mean = math.fsum(w * v for w, v in zip(weight, grid)) / total
    return mean, math.sqrt(math.fsum(w * (v - mean) ** 2 for w, v in zip(weight, grid)) / total)


def deviation(row, mean, sd):
    """Of the mean or the sd, in standard errors; that of an sd is taken as sd / sqrt(2 ESS)."""
    ess = min(row["ess_bulk"], row["ess_tail"])
    return max(abs(row["mean"] - mean) / row["mcse_mean"], abs(row["sd"] - sd) / (sd / math.sqrt(2 * ess)))


def sample(folder, seed):
    """Whether the run has converged, and the row of v."""
    command = [EMASS, "run", "run.yaml", "--seed", str(seed), "--overwrite", "--output", "run.h5", "--quiet"]
    subprocess.run(command, cwd=folder, check=False, timeout=SECONDS)
    words = subprocess.run([EMASS, "summary", "run.h5"], cwd=folder, timeout=SECONDS, capture_output=True, text=True)
    rows = csv.reader(io.StringIO(subprocess.run([EMASS, "summary", "run.h5", "--csv"], cwd=folder, timeout=SECONDS,
                                                 capture_output=True, text=True).stdout))
    names, first = next(rows), next(rows)
    converged = any(line.startswith("converged") for line in words.stdout.splitlines())
    return converged, dict(zip(names[1:], map(float, first[1:])))


def check(number, name, folder, n, y, sd):
    source = PLUGIN % (n, len(y), ", ".join(map(str, y or [0])), sd)
    pathlib.Path(folder, "funnel.c").write_text(source)
    pathlib.Path(folder, "run.yaml").write_text("model: {name: funnel, library: ./funnel.so}\nrun: {chains: 4}\n")
    subprocess.run(["cc", "-O2", "-std=c17", "-shared", "-fPIC", f"-I{INCLUDE}", "funnel.c", "-o", "funnel.so", "-lm"],
                   cwd=folder, check=True)
    found = [sample(folder, seed) for seed in SEEDS]
    converged = [row for good, row in found if good]
    most = max((deviation(row, *law(y, sd)) for row in converged), default=math.nan)
    twin = min((deviation(row, *law(y, 1.5 * sd)) for row in converged), default=math.nan)
    ok = len(converged) >= len(SEEDS) - 1 and most < LIMIT < twin
    print(f"{'ok' if ok else 'not ok'} {number} - {name}: {len(converged)} of {len(SEEDS)} seeds converged, "
          f"largest z {most:.1f}, broken twin {twin:.1f} at least", flush=True)
    return ok


def main():
    failed = 0
    for number, (name, target) in enumerate(TARGETS.items(), 1):
        with tempfile.TemporaryDirectory() as folder:
            failed += not check(number, name, folder, *target)
    print(f"1..{len(TARGETS)}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
