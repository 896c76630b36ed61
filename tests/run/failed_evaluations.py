#!/usr/bin/env python3
"""Evaluations that fail: they reject a trajectory of hmc, nuts and walnuts, they are no divergences, and they do not shorten
the steps. A density fails at random positions, at any position by chance, or at all positions of a half-space."""
import csv
import io
import math
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import EMASS, ROOT, finish, limited, report  # noqa: E402

scratch = tempfile.TemporaryDirectory()
os.chdir(scratch.name)

SOURCE = r"""
#include <emass/plugin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef struct { double rate, chance, least; } options;
static const em_field fields[] = {
    EM_REAL(options, rate, .maximum = 1, .fallback = "0", .doc = "share of the positions that fail"),
    EM_REAL(options, chance, .maximum = 1, .fallback = "0", .doc = "share of the evaluations that fail"),
    EM_REAL(options, least, .minimum = -100, .maximum = 0, .fallback = "-100", .doc = "x[0] below it fails"), {0}};
static const em_variable parameters[] = {{.name = "x", .n_axes = 1, .shape = {5}}};
/* A uniform that the bits of the position determine. */
static double uniform_of(const double *x)
{
    uint64_t hash = UINT64_C(1469598103934665603);
    for (int i = 0; i < 5; i++) {
        uint64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    hash *= UINT64_C(0xBF58476D1CE4E5B9);
    return (double)((hash ^ hash >> 32) >> 11) * 0x1p-53;
}
static double next_uniform(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}
static double density(const void *given, const double *x)
{
    const options *o = given;
    double sum = 0;
    if (uniform_of(x) < o->rate || next_uniform() < o->chance || x[0] < o->least)
        return NAN;
    for (int i = 0; i < 5; i++)
        sum -= x[i] * x[i] / (2 * (i + 1) * (i + 1));
    return sum;
}
EMASS_PLUGIN({.name = "fails", .n_parameter = 1, .parameter = parameters, .options_size = sizeof(options),
              .fields = fields, .log_density = density});
"""
with open("fails.c", "w", encoding="utf-8") as file:
    file.write(SOURCE)
with open("fails.yaml", "w", encoding="utf-8") as file:
    file.write("model: {name: fails, library: ./fails.so}\nrun: {chains: 4}\n")
built = limited("cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT}/include", "fails.c",
                "-o", "fails.so", "-lm")
report(built.returncode == 0, "the density builds", built.stderr)


def run(sampler, seed, **options):
    words = [f"sampler.name={sampler}", f"run.seed={seed}", *(f"model.{name}={value}" for name, value in options.items())]
    return limited(EMASS, "run", "fails.yaml", "--progress", "none", "--output", "fails.h5", "--overwrite",
                   *(word for setting in words for word in ("--set", setting)))


def rows():
    """Means, their Monte Carlo standard errors and standard deviations of x."""
    done = limited(EMASS, "summary", "fails.h5", "--csv")
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    return [(float(row["mean"]), float(row["mcse_mean"]), float(row["sd"])) for row in found]


def near(means, deviations):
    """Whether means are within 5 standard errors, and standard deviations within a fifth."""
    return all(abs(mean - expected) < 5 * error and abs(sd / deviation - 1) < 0.2
               for (mean, error, sd), expected, deviation in zip(rows(), means, deviations))


DEVIATIONS = [1, 2, 3, 4, 5]
for sampler in ("hmc", "nuts", "walnuts"):
    for seed in (1, 2, 3):
        done = run(sampler, seed, rate=0.05)
        report(done.returncode == 0 and re.search(r"^converged: .* 0 divergences", done.stdout, re.M)
               and "evaluations failed (" in done.stderr and near([0] * 5, DEVIATIONS),
               f"{sampler}, seed {seed}: one evaluation in twenty fails", done.stdout, done.stderr)
for sampler in ("hmc", "nuts", "walnuts", "slice"):
    for seed in (1, 2, 3):
        done = run(sampler, seed, chance=0.05)
        report(done.returncode == 0 and re.search(r"^converged", done.stdout, re.M) and near([0] * 5, DEVIATIONS),
               f"{sampler}, seed {seed}: one evaluation in twenty fails by chance", done.stdout, done.stderr)
HALF = [math.sqrt(2 / math.pi), 0, 0, 0, 0], [math.sqrt(1 - 2 / math.pi), *DEVIATIONS[1:]]
for sampler in ("hmc", "nuts", "walnuts"):
    for seed in (1, 2, 3):
        done = run(sampler, seed, least=0)
        report(done.returncode == 0 and "0 divergences" in done.stdout and near(*HALF) and not near([0] * 5, DEVIATIONS),
               f"{sampler}, seed {seed}: the density is zero where its evaluation fails", done.stdout, done.stderr)
done = run("nuts", 1, rate=0.3)
report("not converged" in done.stdout and re.search(r"^Failed evaluations: \d+ of \d+ \(.* %\)\. .*sampler slice", done.stdout, re.M),
       "too many failures for trajectories: the advice names slice", done.stdout, done.stderr)
done = run("slice", 1, rate=0.3)
report(re.search(r"^converged", done.stdout, re.M) and near([0] * 5, DEVIATIONS), "and slice converges", done.stdout, done.stderr)
for ranks in ("1", "2"):
    done = limited(EMASS, "check", "fails.yaml", "--set", "model.rate=0.4", "--ranks", ranks)
    found = re.search(r"^# density    not finite at (\d+) of 100 possible starts of chains, which then start elsewhere", done.stdout, re.M)
    report(done.returncode == 0 and found and 20 <= int(found[1]) <= 60, f"check counts the starts that fail, {ranks} ranks", done.stdout, done.stderr)
done = limited(EMASS, "check", "fails.yaml")
report(done.returncode == 0 and "# density" not in done.stdout, "and says nothing where none does", done.stdout)
finish()
