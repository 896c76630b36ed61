#!/usr/bin/env python3
"""Log evidence of tempered runs with the defaults beside closed forms and quadrature, four seeds each: Beta and binomial,
two Gaussian shells in 2, 5 and 10 dimensions, the egg box, and 100,000 flips of two coins at once.  TAP; $1: the build."""
import math
import os
import tempfile

import lib
from lib import report

lib.needs_packages("log evidence of tempered runs")

import h5py
import numpy as np

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

# Two shells of radius 2 and width 0.1 about (-3.5, 0, ...) and (3.5, 0, ...) (Feroz, Hobson and Bridges 2009).
SHELLS = """
    double term[2], slope[2][D];
    for (int k = 0; k < 2; k++) {
        double square = 0;
        for (int i = 0; i < D; i++)
            square += (slope[k][i] = x[i] - (i == 0 ? 7 * k - 3.5 : 0)) * slope[k][i];
        const double far = sqrt(square) - 2;
        term[k] = -far * far / 0.02 - log(0.1) - 0.918938533204672742;
        for (int i = 0; i < D; i++)
            slope[k][i] *= -far / 0.01 / sqrt(square);
    }
    const double most = fmax(term[0], term[1]), sum = exp(term[0] - most) + exp(term[1] - most);
    *log_p += most + log(sum);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < D; i++)
            gradient[i] += exp(term[k] - most) / sum * slope[k][i];
"""

EGG_BOX = """
    const double a = cos(x[0] / 2), b = cos(x[1] / 2), fourth = pow(2 + a * b, 4);
    *log_p += fourth * (2 + a * b);
    gradient[0] -= 2.5 * fourth * sin(x[0] / 2) * b;
    gradient[1] -= 2.5 * fourth * sin(x[1] / 2) * a;
"""

# A flip is a head where both coins are: half of 100,000 are.
COINS = """
    const double n = 1e5, k = 5e4, q = x[0] * x[1], slope = k / q - (n - k) / (1 - q);
    *log_p += lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) + (n - k) * log1p(-q);
    gradient[0] += slope * x[1];
    gradient[1] += slope * x[0];
"""


def beta_binomial():
    return (math.lgamma(5) - math.lgamma(2) - math.lgamma(3) + math.lgamma(11) - math.lgamma(8) - math.lgamma(4) +
            math.lgamma(9) + math.lgamma(6) - math.lgamma(15))


def shells(dim):
    """Each is the area of a sphere times the integral over the radius, by Simpson's rule."""
    radius = np.linspace(1, 3, 4001)
    weight = np.ones(4001)
    weight[1:-1:2], weight[2:-1:2] = 4, 2
    ring = weight @ (radius**(dim - 1) * np.exp(-(radius - 2)**2 / 0.02)) * 5e-4 / 3 / math.sqrt(2 * math.pi * 0.01)
    return math.log(2 * 2 * math.pi**(dim / 2) / math.gamma(dim / 2) * ring) - dim * math.log(12)


def egg_box():
    """The mean over the square, whose sides are 10 pi, by midpoints."""
    half = np.cos((np.arange(4000) + 0.5) / 4000 * 5 * math.pi)
    return math.log(np.exp((2 + np.outer(half, half))**5 - 240).mean()) + 240


def coins():
    """The product q of two uniform numbers has the density -log q; by midpoints about 1/2."""
    n, k = 1e5, 5e4
    q = 0.5 + (np.arange(200000) + 0.5 - 100000) * 2e-7
    log_p = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * np.log(q) + (n - k) * np.log1p(-q)
    return math.log((np.exp(log_p) * -np.log(q)).sum() * 2e-7)


def check(name, dim, density, truth, interval=("0", "1")):
    with open("model.c", "w") as out:
        out.write(SOURCE % {"name": name, "dim": dim, "density": density, "from": interval[0], "to": interval[1]})
    done = lib.limited("cc", "-O2", "-std=c17", "-shared", "-fPIC", f"-I{lib.ROOT}/include", "model.c", "-o",
                       f"{name}{dim}.so", "-lm")
    with open("run.yaml", "w") as out:
        out.write(f"model: {{name: {name}, library: ./{name}{dim}.so}}\ntemper: {{}}\nrun: {{draws: 1000}}\n")
    found = []
    for seed in SEEDS:
        if done.returncode == 0:
            done = lib.limited(lib.EMASS, "run", "run.yaml", "--seed", seed, "--overwrite", "--quiet")
        if done.returncode == 0:
            with h5py.File("run.h5") as file:
                found.append([file.attrs["log_evidence"], file.attrs["log_evidence_error"]])
    found = np.array(found)
    what = f"{name}, {dim} dimension{'s' if dim > 1 else ''}: log evidence {truth:.3f}"
    if len(found) < len(SEEDS):
        report(False, what, done.stderr)
        return
    z = (found[:, 0] - truth) / found[:, 1]
    report(abs(z).max() < LIMIT and abs(z.sum()) < LIMIT * len(z)**0.5 and found[:, 1].max() < 0.25, what, found, "z", z)
    broken = z - 0.5 / found[:, 1]  # the same test sees an evidence that is half a unit off
    report(abs(broken.sum()) > LIMIT * len(z)**0.5, what + ": a broken truth is seen", broken)


os.environ["SOURCE_DATE_EPOCH"] = "0"
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    check("beta", 1, BETA, beta_binomial())
    for size in (2, 5, 10):
        check("shells", size, SHELLS, shells(size), ("-6", "6"))
    check("eggbox", 2, EGG_BOX, egg_box(), ("0", "31.41592653589793"))
    check("coins", 2, COINS, coins())
    os.chdir("/")
lib.finish()
