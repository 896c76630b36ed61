#!/usr/bin/env python3
"""Tempered chains learn a non-centred form: the law of the log scale and the log evidence of funnels, four seeds each.

A funnel about a mean has v ~ N(0, 9), mu ~ N(0, 1), x_i ~ N(mu, e^v) and the integral 1; reference A is normal. The
eight schools are in their centred form, with the prior as reference A; quadrature gives their evidence and the law of v
= log tau. Two funnels whose means are 60 apart begin untempered, in one funnel or the other, so ladders take over the
map of the chains. A bent density has the integral 1 as well; its map straightens it. Each moment has to be within 4.5
Monte Carlo standard errors; the broken twins are another law and, with mass.noncentring off, the model's coordinates.
TAP; $1: the build."""
import math
import os
import sys
import tempfile

import lib
from lib import report

lib.needs_packages("tempered funnels")

import arviz as az
import h5py
import numpy as np

sys.path.insert(0, os.path.join(lib.ROOT, "tests", "support"))
from known_evidence import schools, schools_law

LIMIT, SEEDS = 4.5, range(1, 5)

FUNNEL = r"""
#include <emass/plugin.h>
#include <math.h>
enum { N = 8, FUNNELS = %d };
/* Adds the log density of one funnel, whose mean is near `at`. */
static double one(double at, const double *q, double *gradient)
{
    const double v = q[0], mu = q[1] - at, precision = exp(-v);
    double log_p = -log(3) - (2 + N) * 0.918938533204672742 - v * v / 18 - mu * mu / 2 - N * v / 2;
    gradient[0] = -v / 9 - N / 2.0;
    gradient[1] = -mu;
    for (int i = 2; i < 2 + N; i++) {
        const double x = q[i] - q[1];
        log_p -= precision * x * x / 2;
        gradient[0] += precision * x * x / 2;
        gradient[1] += precision * x;
        gradient[i] = -precision * x;
    }
    return log_p;
}
static em_status density(const void *given, const double *q, double *log_p, double *gradient)
{
    double own[2][2 + N], term[2];
    (void)given;
    for (int k = 0; k < FUNNELS; k++)
        term[k] = one(FUNNELS == 1 ? 0 : 60 * k - 30, q, own[k]) + (FUNNELS == 1 ? 0 : log(k == 0 ? 0.3 : 0.7));
    const double most = FUNNELS == 1 ? term[0] : fmax(term[0], term[1]);
    double sum = 0;
    for (int k = 0; k < FUNNELS; k++)
        sum += exp(term[k] - most);
    *log_p += most + log(sum);
    for (int k = 0; k < FUNNELS; k++)
        for (int i = 0; i < 2 + N; i++)
            gradient[i] += exp(term[k] - most) / sum * own[k][i];
    return EM_OK;
}
static const em_variable parameters[] = {{.name = "v"}, {.name = "mu"}, {.name = "x", .n_axes = 1, .shape = {N}}};
EMASS_PLUGIN({.name = "funnel", .n_parameter = 3, .parameter = parameters, .log_density_gradient = density});
"""

# A hybrid Rosenbrock density: v ~ N(1, 10), x_1 ~ N(0.3 v^2, 1/4), x_(i+1) ~ N(0.3 x_i^2, 1/4).
BEND = r"""
#include <emass/plugin.h>
#include <math.h>
enum { N = 4 };
static em_status density(const void *given, const double *q, double *log_p, double *gradient)
{
    (void)given;
    *log_p -= (q[0] - 1) * (q[0] - 1) / 20 + 0.5 * log(10) - N * log(2) + (1 + N) * 0.918938533204672742;
    gradient[0] -= (q[0] - 1) / 10;
    for (int i = 1; i <= N; i++) {
        const double away = q[i] - 0.3 * q[i - 1] * q[i - 1];
        *log_p -= 2 * away * away;
        gradient[i] -= 4 * away;
        gradient[i - 1] += 2.4 * away * q[i - 1];
    }
    return EM_OK;
}
static const em_variable parameters[] = {{.name = "v"}, {.name = "x", .n_axes = 1, .shape = {N}}};
EMASS_PLUGIN({.name = "bend", .n_parameter = 2, .parameter = parameters, .log_density_gradient = density});
"""

SCHOOLS = r"""
#include <emass/model/prior.h>
#include <emass/plugin.h>
#include <emass/random.h>
#include <math.h>
#include <stdlib.h>
enum { N = 8 };
static const double y[N] = {28, 8, -3, 7, -1, 1, 18, 12}, sigma[N] = {15, 10, 16, 11, 9, 11, 10, 18};
static const em_variable parameters[] = {{.name = "v"}, {.name = "mu"}, {.name = "x", .n_axes = 1, .shape = {N}}};
static void destroy(em_model *model)
{
    free(model);
}
static em_status create(const void *given, const em_model_context *context, em_model **out)
{
    em_model *model = calloc(1, sizeof *model);
    (void)given;
    if (!model)
        return em_fail(EM_EMEMORY, "out of memory");
    *model = (em_model){.ops = context->ops, .n_parameter = 3, .parameter = parameters, .n_variable = 3,
                        .variable = parameters, .rows = {.total = N, .part = N, .count = N}};
    *out = model;
    return EM_OK;
}
static em_status add_prior(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *q = query->theta + c * query->stride, v = q[0], precision = exp(-2 * v);
        const double ratio = exp(2 * v) / 25;
        double *gradient = query->gradient + c * query->stride;
        (void)model;
        query->log_density[c] += v - log1p(ratio) - q[1] * q[1] / 50 - N * v;
        gradient[0] += 2 / (1 + ratio) - 1 - N;
        gradient[1] -= q[1] / 25;
        for (int i = 2; i < 2 + N; i++) {
            const double x = q[i] - q[1];
            query->log_density[c] -= precision * x * x / 2;
            gradient[0] += precision * x * x;
            gradient[1] += precision * x;
            gradient[i] -= precision * x;
        }
    }
    return EM_OK;
}
static em_status add_likelihood(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t i = 0; i < query->rows.count; i++) {
            const int64_t j = model->rows.first + em_row(&query->rows, i), at = c * query->stride + 2 + j;
            const double z = (y[j] - query->theta[at]) / sigma[j];
            query->log_density[c] -= z * z / 2 + log(sigma[j]) + 0.918938533204672742;
            query->gradient[at] += z / sigma[j];
        }
    return EM_OK;
}
static em_status draw(em_model *model, const em_draw *number, double *q)
{
    double u;
    em_draw_normals(number, 0, 2 + N, q);
    em_draw_uniforms(number, 0, 1, &u);
    q[0] = log(5 * tan(1.5707963267948966 * u));
    q[1] *= 5;
    for (int64_t i = 2; i < model->dim; i++)
        q[i] = q[1] + exp(q[0]) * q[i];
    return EM_OK;
}
static em_status constants(em_model *model, const double *theta, double *prior, double *likelihood)
{
    (void)model;
    (void)theta;
    *prior = -(N + 1) * 0.918938533204672742 - 2 * log(5) + log(2 / 3.14159265358979324);
    *likelihood = 0;
    return EM_OK;
}
EMASS_PLUGIN({.name = "schools", .create = create, .destroy = destroy, .add_prior = add_prior,
              .add_likelihood = add_likelihood,
              .prior = &(const em_model_prior){.draw = draw, .log_constants = constants}});
"""


def built(name, source):
    with open(name + ".c", "w") as out:
        out.write(source)
    done = lib.limited("cc", "-std=c17", "-O2", "-shared", "-fPIC", f"-I{lib.ROOT}/include", name + ".c", "-o",
                       f"{name}.so", "-lm")
    if done.returncode:
        report(False, f"{name} builds", done.stderr)
    return done.returncode == 0


def sample(name, *settings, temper="{}", seeds=SEEDS):
    """The files of all seeds, open; [] after a failure."""
    with open("run.yaml", "w") as out:
        out.write(f"model: {{name: {name}, library: ./{name}.so}}\ntemper: {temper}\nrun: {{chains: 4, draws: 1000}}\n")
    files = []
    for seed in seeds:
        path = f"{name}{seed}.h5"
        done = lib.limited(lib.EMASS, "run", "run.yaml", "--seed", seed, "--overwrite", "--quiet", "--output", path,
                           *(part for setting in settings for part in ("--set", setting)))
        if done.returncode:
            report(False, f"{name}, seed {seed}", done.stderr)
            return []
        files.append(h5py.File(path))
    return files


def verdict(file):
    return np.bytes_(file.attrs["verdict"]).decode().split(":")[0]


def scores(files, mean, sd):
    """z of the mean of v and of its mean square about the true mean, for each run."""
    out = []
    for file in files:
        v = file["posterior/v"][:]
        out += [(draws.mean() - truth) / float(az.mcse(draws)) for draws, truth in ((v, mean), ((v - mean)**2, sd**2))]
    return np.array(out)


def check_law(what, files, mean, sd):
    z, twin = scores(files, mean, sd), scores(files, mean + 0.5, sd)
    report(files and abs(z).max() < LIMIT < abs(twin).max(), f"{what}: the law of v", "z", z, "of a twin", twin)
    said = [verdict(file) for file in files]
    report(all(word != "not converged" for word in said), f"{what}: the verdict", *said)


def check_evidence(what, files, truth):
    z = [(file.attrs["log_evidence"] - truth) / file.attrs["log_evidence_error"] for file in files]
    report(files and max(map(abs, z)) < LIMIT, f"{what}: log evidence", "z", z)


def members(file):
    """The number of parameters that the map of the file makes non-centred."""
    return int((file["tempering/noncentring"][:, 0] > 0).sum()) if "noncentring" in file["tempering"] else 0


def check_funnel():
    files = built("funnel", FUNNEL % 1) and sample("funnel")
    if not files:
        return
    check_law("a funnel", files, 0, 3)
    check_evidence("a funnel", files, 0)
    report([members(file) for file in files] == [8] * len(files), "the file has the map of 8 parameters")
    off = sample("funnel", "mass.noncentring=off", seeds=[1])
    report(off and verdict(off[0]) == "not converged" and members(off[0]) == 0, "in the model's coordinates it fails",
           *map(verdict, off))


def check_bend():
    files = built("bend", BEND) and sample("bend")
    if not files:
        return
    check_law("a bent density", files, 1, math.sqrt(10))
    check_evidence("a bent density", files, 0)
    report([members(file) for file in files] == [4] * len(files), "the file has the map of 4 parameters")
    off = sample("bend", "mass.noncentring=off", seeds=[1])
    z = off and off[0].attrs["log_evidence"] / off[0].attrs["log_evidence_error"]
    report(off and (verdict(off[0]) == "not converged" or abs(z) > LIMIT), "in the model's coordinates it fails",
           *map(verdict, off), z)


def check_schools():
    if not built("schools", SCHOOLS):
        return
    v, density = schools_law()
    mean = (v * density).sum()
    files = sample("schools")
    check_law("centred schools", files, mean, math.sqrt(((v - mean)**2 * density).sum()))
    check_evidence("centred schools", files, schools())


def check_two():
    """Chains of the untempered warmup stay where they started; the weights of the funnels are .3 and .7."""
    files = built("funnel", FUNNEL % 2) and sample("funnel", "run.draws=4000", temper="auto")
    if not files:
        return
    check_law("two funnels", files, 0, 3)
    check_evidence("two funnels", files, 0)
    share = [(file["posterior/mu"][:] < 0).astype(float) for file in files]
    z = [(draws.mean() - 0.3) / float(az.mcse(draws)) for draws in share]
    report(max(map(abs, z)) < LIMIT, "two funnels: their weights", "z", z)
    report(all("tempered_from" in file.attrs and members(file) for file in files), "they began untempered")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    check_funnel()
    check_bend()
    check_schools()
    check_two()
    os.chdir("/")
lib.finish()
