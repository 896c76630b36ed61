#!/usr/bin/env python3
"""Log evidence of tempered runs with the defaults beside closed forms and quadrature, four seeds each: Beta and binomial,
two Gaussian shells in 2, 5 and 10 dimensions, the egg box, 100,000 flips of two coins at once, and a normal law of
201 dimensions.  TAP; $1: the build."""
import math
import os
import sys
import tempfile

import lib
from lib import report

lib.needs_packages("log evidence of tempered runs")

import h5py
import numpy as np

sys.path.insert(0, os.path.join(lib.ROOT, "tests", "support"))
from known_evidence import EGG_BOX, SHELLS, egg_box, shells

LIMIT = 6  # standard errors, which are estimates themselves
SEEDS = range(1, 5)

# The parameters have a uniform law between FROM and TO, unless the density says otherwise.
SOURCE = """
#include <emass/plugin.h>
#include <math.h>
enum { D = %(dim)d };
static em_status density(const void *given, const double *x, double *log_p, double *gradient)
{
    (void)given;
    *log_p -= D * log((double)(%(to)s) - (double)(%(from)s));
    {%(density)s}
    return EM_OK;
}
static const em_variable x = {.name = "x", .n_axes = 1, .shape = {D}, .bounds = EM_WITHIN(%(from)s, %(to)s)};
EMASS_PLUGIN({.name = "%(name)s", .n_parameter = 1, .parameter = &x, .log_density_gradient = density});
"""

# x ~ Beta(2, 3); 7 of 10 trials succeed.
BETA = """
    *log_p += lgamma(5) - lgamma(2) - lgamma(3) + lgamma(11) - lgamma(8) - lgamma(4) + 8 * log(x[0]) + 5 * log1p(-x[0]);
    gradient[0] += 8 / x[0] - 5 / (1 - x[0]);
"""

# A flip is a head where both coins are: half of 100,000 are.
COINS = """
    const double n = 1e5, k = 5e4, q = x[0] * x[1], slope = k / q - (n - k) / (1 - q);
    *log_p += lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) + (n - k) * log1p(-q);
    gradient[0] += slope * x[1];
    gradient[1] += slope * x[0];
"""


# 1/2 N(0, 0.05^2) + 1/2 N(1, 2^2): no valley between the spike and the slab.
SPIKE = """
    double term[2] = {log(0.5), log(0.5)};
    const double sd[] = {0.05, 2};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < D; i++)
            term[k] -= pow((x[i] - k) / sd[k], 2) / 2 + log(sd[k]) + 0.918938533204672742;
    const double most = fmax(term[0], term[1]), sum = exp(term[0] - most) + exp(term[1] - most);
    *log_p += most + log(sum);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < D; i++)
            gradient[i] -= exp(term[k] - most) / sum * (x[i] - k) / (sd[k] * sd[k]);
"""


def beta_binomial():
    return (math.lgamma(5) - math.lgamma(2) - math.lgamma(3) + math.lgamma(11) - math.lgamma(8) - math.lgamma(4) +
            math.lgamma(9) + math.lgamma(6) - math.lgamma(15))


def coins():
    """The product q of two uniform numbers has the density -log q; by midpoints about 1/2."""
    n, k = 1e5, 5e4
    q = 0.5 + (np.arange(200000) + 0.5 - 100000) * 2e-7
    log_p = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * np.log(q) + (n - k) * np.log1p(-q)
    return math.log((np.exp(log_p) * -np.log(q)).sum() * 2e-7)


def draw_all(done):
    """Log evidence, its error and the barriers of both legs of run.yaml, for each seed; and the last command."""
    found = []
    for seed in SEEDS:
        if done is None or done.returncode == 0:
            done = lib.limited(lib.EMASS, "run", "run.yaml", "--seed", seed, "--overwrite", "--quiet")
        if done.returncode == 0:
            with h5py.File("run.h5") as file:
                found.append([file.attrs["log_evidence"], file.attrs["log_evidence_error"],
                              *file["tempering/barrier"][:]])
    return np.array(found), done


def judge(what, truth, found, done):
    what = f"{what}: log evidence {truth:.3f}"
    if len(found) < len(SEEDS):
        report(False, what, done.stderr)
        return
    z = (found[:, 0] - truth) / found[:, 1]
    report(abs(z).max() < LIMIT and abs(z.sum()) < LIMIT * len(z)**0.5 and found[:, 1].max() < 0.25, what, found, "z", z)
    broken = z - 0.5 / found[:, 1]  # the same test sees an evidence that is half a unit off
    report(abs(broken.sum()) > LIMIT * len(z)**0.5, what + ": a broken truth is seen", broken)


def check(name, dim, density, truth, interval=("0", "1")):
    with open("model.c", "w") as out:
        out.write(SOURCE % {"name": name, "dim": dim, "density": density, "from": interval[0], "to": interval[1]})
    done = lib.limited("cc", "-O2", "-std=c17", "-shared", "-fPIC", f"-I{lib.ROOT}/include", "model.c", "-o",
                       f"{name}{dim}.so", "-lm")
    with open("run.yaml", "w") as out:
        out.write(f"model: {{name: {name}, library: ./{name}{dim}.so}}\ntemper: {{}}\nrun: {{draws: 1000}}\n")
    judge(f"{name}, {dim} dimension{'s' if dim > 1 else ''}", truth, *draw_all(done))


def check_correlated(dim, rank):
    """A normal law that is 30 times as wide along some directions, and 30 times as narrow along others. The learned
    reference knows them: a diagonal one has a barrier of 5.2 to 5.6."""
    rng = np.random.default_rng(2)
    directions = np.linalg.qr(rng.normal(size=(dim, 2 * rank)))[0]
    scale = np.exp(0.3 * rng.normal(size=dim))
    values = np.repeat([30, 1 / 30], rank)
    covariance = scale[:, None] * (np.eye(dim) + directions * (values - 1) @ directions.T) * scale
    np.savetxt("covariance.csv", covariance, delimiter=",")
    with open("run.yaml", "w") as out:
        out.write("model: {name: gaussian, covariance: covariance.csv}\ntemper: {scale: 2}\nrun: {draws: 400}\n")
    found, done = draw_all(None)
    judge(f"a correlated normal law of {dim} dimensions",
          dim / 2 * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] / 2, found, done)
    report(len(found) == len(SEEDS) and found[:, 3].max() < 3.5, "the learned reference is of low rank", found)


os.environ["SOURCE_DATE_EPOCH"] = "0"
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    check("beta", 1, BETA, beta_binomial())
    for size in (2, 5, 10):
        check("shells", size, SHELLS, shells(size), ("-6", "6"))
    check("eggbox", 2, EGG_BOX, egg_box(), ("0", "31.41592653589793"))
    check("coins", 2, COINS, coins())
    check("spike", 3, SPIKE, -3 * math.log(20), ("-10", "10"))
    check_correlated(201, 3)
    os.chdir("/")
lib.finish()
