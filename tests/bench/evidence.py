#!/usr/bin/env python3
"""Log evidence beside dynesty and pocoMC, in one run with their defaults: make bench-evidence.

    tests/bench/evidence.py EMASS [--seeds N] [TARGET ...]

Of each target and program: density evaluations (emass: with gradients, of all rungs and of the search for modes),
seconds on one core, the mean error of log Z, its largest error, and its standard error as the program says it. The
target `heart` needs EMASS_DATA."""
import argparse
import functools
import math
import os
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
from scipy import stats

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import known_evidence

SCHOOLS = np.array([28, 8, -3, 7, -1, 1, 18, 12.0]), np.array([15, 10, 16, 11, 9, 11, 10, 18.0])


def shells(x):
    """Two shells of radius 2 and width 0.1 at -3.5 and 3.5."""
    terms = []
    for at in (-3.5, 3.5):
        centre = np.zeros(x.shape[-1])
        centre[0] = at
        r = np.sqrt(((x - centre)**2).sum(-1))
        terms.append(-(r - 2)**2 / 0.02 - 0.5 * math.log(2 * math.pi * 0.01))
    return np.logaddexp(*terms)


def eggbox(x):
    return (2 + np.cos(x[..., 0] / 2) * np.cos(x[..., 1] / 2))**5


def mixture(x):
    """1/2 N(-10, I) + 1/2 N(10, I) in 5 dimensions over the normal prior N(0, 10^2 I)."""
    size = x.shape[-1]
    return np.logaddexp(*(math.log(0.5) - size / 2 * math.log(2 * math.pi) - ((x - at)**2).sum(-1) / 2
                          for at in (-10, 10)))


def spike_and_slab(x):
    """1/2 N(0, 0.05^2) + 1/2 N(1, 2^2) in 3 dimensions."""
    return np.logaddexp(*(math.log(0.5) + stats.norm.logpdf(x, at, sd).sum(-1) for at, sd in ((0, 0.05), (1, 2))))


def schools(x):
    """mu, tau, and the standardised effects of the eight schools."""
    y, sigma = SCHOOLS
    return stats.norm.logpdf(y, x[..., :1] + x[..., 1:2] * x[..., 2:], sigma).sum(-1)


def coin_flips(x):
    p = np.clip(x[..., 0] * x[..., 1], 1e-300, 1 - 1e-16)
    return math.lgamma(100001) - 2 * math.lgamma(50001) + 50000 * (np.log(p) + np.log1p(-p))


@functools.cache
def heart():
    """An intercept and the standardised columns, and whether the disease is present."""
    table = np.loadtxt(os.path.join(os.environ["EMASS_DATA"], "heart", "heart.dat"))
    x = (table[:, :-1] - table[:, :-1].mean(0)) / table[:, :-1].std(0, ddof=1)
    return np.hstack([np.ones((len(x), 1)), x]), (table[:, -1] == 2).astype(float)


def regression(x):
    rows, y = heart()
    eta = x @ rows.T
    return eta @ y - np.logaddexp(0, eta).sum(-1)


def regression_in_c():
    """The likelihood of the regression, with its data."""
    rows, y = heart()
    return f"""
    static const double row[][D] = {{{", ".join("{" + ", ".join(map(repr, map(float, r))) + "}" for r in rows)}}};
    static const double y[] = {{{", ".join(map(repr, map(float, y)))}}};
    for (int i = 0; i < {len(y)}; i++) {{
        double eta = 0;
        for (int k = 0; k < D; k++) eta += row[i][k] * x[k];
        *log_p += y[i] * eta - (fmax(eta, 0) + log1p(exp(-fabs(eta))));
        for (int k = 0; k < D; k++) gradient[k] += (y[i] - 1 / (1 + exp(-eta))) * row[i][k];
    }}"""


def normal_evidence(parts, size, scale):
    """Of a mixture of N(at, sd^2 I) over the prior N(0, scale^2 I): where prior and mode overlap, a normal density."""
    return np.logaddexp.reduce([math.log(w) + size * stats.norm.logpdf(at, 0, math.hypot(sd, scale))
                                for w, at, sd in parts])


TARGETS = {  # likelihood, dimensions, priors of all (scipy), log Z
    "shells": (shells, 2, [stats.uniform(-6, 12)] * 2, lambda: known_evidence.shells(2)),
    "eggbox": (eggbox, 2, [stats.uniform(0, 10 * math.pi)] * 2, known_evidence.egg_box),
    "mixture": (mixture, 5, [stats.norm(0, 10)] * 5,
                lambda: normal_evidence([(.5, -10, 1), (.5, 10, 1)], 5, 10)),
    "spike and slab": (spike_and_slab, 3, [stats.norm(0, 10)] * 3,
                       lambda: normal_evidence([(.5, 0, .05), (.5, 1, 2)], 3, 10)),
    "eight schools": (schools, 10, [stats.norm(0, 5), stats.halfcauchy(0, 5)] + [stats.norm(0, 1)] * 8,
                      known_evidence.schools),
    "coin flips": (coin_flips, 2, [stats.uniform(0, 1)] * 2, known_evidence.coin_flips),
    "heart": (regression, 14, [stats.norm(0, math.sqrt(10))] * 14,
              functools.cache(lambda: known_evidence.logistic(*heart(), math.sqrt(10)))),
}

# The log likelihood at x and its gradient, added to *log_p and gradient.
LIKELIHOOD = {
    "shells": known_evidence.SHELLS,
    "eggbox": known_evidence.EGG_BOX,
    "coin flips": known_evidence.COIN_FLIPS,
    "normals": """
    double term[2], most, sum;
    for (int k = 0; k < 2; k++) {
        term[k] = log(0.5) - D * (0.918938533204672742 + log(sd[k]));
        for (int i = 0; i < D; i++) term[k] -= pow((x[i] - at[k]) / sd[k], 2) / 2;
    }
    most = fmax(term[0], term[1]); sum = exp(term[0] - most) + exp(term[1] - most);
    *log_p += most + log(sum);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < D; i++)
            gradient[i] -= exp(term[k] - most) / sum * (x[i] - at[k]) / (sd[k] * sd[k]);""",
    "eight schools": """
    static const double y[] = {28, 8, -3, 7, -1, 1, 18, 12}, s[] = {15, 10, 16, 11, 9, 11, 10, 18};
    for (int j = 0; j < 8; j++) {
        double z = (y[j] - x[0] - x[1] * x[2 + j]) / s[j];
        *log_p -= z * z / 2 + log(s[j]) + 0.918938533204672742;
        gradient[0] += z / s[j]; gradient[1] += z / s[j] * x[2 + j]; gradient[2 + j] += z / s[j] * x[1];
    }""",
}
# The prior of each coordinate, on the unconstrained scale: uniform on (low, high), normal, or half-Cauchy.
MODEL = """
#include <emass/plugin.h>
#include <math.h>
#include <stdio.h>
enum {{ D = {size} }};
static long evaluations;
__attribute__((destructor)) static void tell(void)
{{
    FILE *out = fopen("evaluations", "w");
    if (out) {{ fprintf(out, "%ld\\n", evaluations); fclose(out); }}
}}
static const double at[] = {{{at}}}, sd[] = {{{sd}}};
static const struct {{ char kind; double a, b; }} prior[] = {{{priors}}};
static em_status density(const void *given, const double *u, double *log_p, double *gradient)
{{
    double x[D], scale[D], value = 0, slope[D] = {{0}};
    (void)given; (void)at; (void)sd; evaluations++;
    for (int i = 0; i < D; i++) {{
        const double a = prior[i].a, b = prior[i].b, s = 1 / (1 + exp(-u[i]));
        if (prior[i].kind == 'u') {{
            x[i] = a + b * s; scale[i] = b * s * (1 - s);
            *log_p += -fabs(u[i]) - 2 * log1p(exp(-fabs(u[i]))); gradient[i] += 1 - 2 * s;
        }} else if (prior[i].kind == 'n') {{
            x[i] = u[i]; scale[i] = 1;
            *log_p -= pow((u[i] - a) / b, 2) / 2 + log(b) + 0.918938533204672742; gradient[i] -= (u[i] - a) / (b * b);
        }} else {{
            x[i] = exp(u[i]); scale[i] = x[i];
            double q = x[i] * x[i] / (b * b);
            *log_p += log(2 / (3.141592653589793 * b)) - log1p(q) + u[i]; gradient[i] += 1 - 2 * q / (1 + q);
        }}
    }}
    {{
        double *log_p = &value, *gradient = slope;
        {likelihood}
    }}
    *log_p += value;
    for (int i = 0; i < D; i++) gradient[i] += slope[i] * scale[i];
    return EM_OK;
}}
static const em_variable theta = {{.name = "u", .n_axes = 1, .shape = {{D}}}};
EMASS_PLUGIN({{.name = "target", .n_parameter = 1, .parameter = &theta, .log_density_gradient = density}});
"""


def build(name):
    _, size, priors, _ = TARGETS[name]
    kind = {"uniform": "u", "norm": "n", "halfcauchy": "c"}
    rows = ", ".join(f"{{'{kind[p.dist.name]}', {p.args[0]}, {p.args[1]}}}" for p in priors)
    at, sd = ("0, 1", ".05, 2") if name == "spike and slab" else ("-10, 10", "1, 1")
    likelihood = regression_in_c() if name == "heart" else LIKELIHOOD.get(name, LIKELIHOOD["normals"])
    with open("target.c", "w") as out:
        out.write(MODEL.format(size=size, at=at, sd=sd, priors=rows, likelihood=likelihood))
    subprocess.run(["cc", "-O2", "-std=gnu17", "-shared", "-fPIC", f"-I{ROOT}/include", "target.c", "-o", "target.so",
                    "-lm"], check=True)
    with open("run.yaml", "w") as out:
        out.write("model: {name: target, library: ./target.so}\ntemper: {}\nrun: {chains: 4, draws: 1000}\n")


def by_emass(emass, seed, *_):
    subprocess.run([emass, "run", "run.yaml", "--overwrite", "--quiet", "--seed", str(seed)], check=True)
    with h5py.File("run.h5") as file:
        return file.attrs["log_evidence"], file.attrs["log_evidence_error"], int(open("evaluations").read())


def by_dynesty(_, seed, likelihood, size, priors):
    import dynesty
    sampler = dynesty.NestedSampler(likelihood, lambda u: np.array([p.ppf(v) for p, v in zip(priors, u)]), size,
                                    rstate=np.random.default_rng(seed))
    sampler.run_nested(print_progress=False)
    found = sampler.results
    return found.logz[-1], found.logzerr[-1], int(np.sum(found.ncall))


def by_pocomc(_, seed, likelihood, size, priors):
    import pocomc
    import torch
    torch.set_num_threads(1)
    sampler = pocomc.Sampler(prior=pocomc.Prior(priors), likelihood=likelihood, vectorize=True, random_state=seed)
    sampler.run(progress=False)
    value, error = sampler.evidence()
    return value, error, int(np.max(sampler.results["calls"]))


PROGRAMS = {"emass": by_emass, "dynesty": by_dynesty, "pocoMC": by_pocomc}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("emass", type=os.path.abspath)
    parser.add_argument("target", nargs="*")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS))
    given = parser.parse_intermixed_args()
    print("| target | program | evaluations | seconds | error of log Z | largest | standard error |")
    print("|---|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in given.target or TARGETS:
            if name == "heart" and "EMASS_DATA" not in os.environ:
                print("| heart | skipped: EMASS_DATA is not set |")
                continue
            likelihood, size, priors, truth = TARGETS[name]
            build(name)
            for program in given.programs:
                rows = []
                for seed in range(1, given.seeds + 1):
                    before = time.process_time() + sum(os.times()[2:4])
                    value, error, calls = PROGRAMS[program](given.emass, seed, likelihood, size, priors)
                    rows.append((calls, time.process_time() + sum(os.times()[2:4]) - before, value - truth(), error))
                calls, seconds, off, error = np.array(rows, float).T
                print(f"| {name} | {program} | {calls.mean():,.0f} | {seconds.mean():.1f} | {off.mean():+.3f} | "
                      f"{max(off, key=abs):+.3f} | {error.mean():.3f} |", flush=True)
        os.chdir("/")


main()
