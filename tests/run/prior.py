#!/usr/bin/env python3
"""output.prior_draws: what is drawn is the prior of the model, in Monte Carlo standard errors, beside
twins that are another prior and must fail; the same on any ranks; the posterior is left as it was;
models without draws from a prior say so and write nothing.  TAP; $1: the build."""
import os
import tempfile

import lib
from lib import report

lib.needs_packages("draws from the prior")

import arviz
import numpy as np
import xarray
from scipy import stats

MANY = 2000
TAIL = "run: {chains: 3, warmup: 5, draws: 5, seed: 3}\nmass: {estimator: none}\n"


def emass(*command, ranks=1):
    launcher = ["mpirun", "-n", ranks] if ranks > 1 else []
    return lib.limited(*launcher, lib.EMASS, *command, env=dict(os.environ, SOURCE_DATE_EPOCH="0"))


def run(model, output, *more, draws=MANY, ranks=1):
    with open("run.yaml", "w") as file:
        print(f"model: {{{model}}}\nsampler: {{name: hmc, leapfrog_steps: 2, step_size: 0.01}}", file=file)
        print(f"output: {{prior_draws: {draws}}}\n{TAIL}", file=file)
    return emass("run", "run.yaml", "--quiet", "--overwrite", "--output", output, *more, ranks=ranks)


def group(path, name):
    with xarray.open_dataset(path, group=name) as data:
        return data.load()


def z(uniform):
    """How far from uniform: the largest deviation of the first two moments, in standard errors."""
    u = np.ravel(uniform)
    centred = (u - 0.5) ** 2
    return max(abs(u.mean() - 0.5) * np.sqrt(12 * u.size), abs(centred.mean() - 1 / 12) * np.sqrt(180 * u.size))


def law(what, values, distribution, twin):
    """The values have the distribution; and not the other one, which differs in scale."""
    right, wrong = z(distribution.cdf(values)), z(twin.cdf(values))
    report(right < 5 < wrong and np.size(values) >= MANY, f"{what} is of its prior (a twin is not)", right, wrong)


def schools():
    done = run("name: eight_schools, posterior_predictive: true", "schools.h5")
    prior, predicted = group("schools.h5", "prior"), group("schools.h5", "prior_predictive")
    law("eight_schools: mu", prior.mu, stats.norm(0, 5), stats.norm(0, 5.5))
    law("eight_schools: tau", prior.tau, stats.halfcauchy(scale=5), stats.halfcauchy(scale=6))
    law("eight_schools: theta_tilde", prior.theta_tilde, stats.norm, stats.norm(0, 1.05))
    report(np.allclose(prior.theta, prior.mu + prior.tau * prior.theta_tilde), "theta is made of them")
    sigma = group("schools.h5", "constant_data").sigma
    law("eight_schools: y about theta", (predicted.y - prior.theta) / sigma, stats.norm, stats.norm(0, 1.05))
    u = stats.norm.cdf(np.stack([prior.mu / 5, prior.theta_tilde[..., 0], (predicted.y - prior.theta)[..., 0] / 15]))
    correlation = np.corrcoef(u.reshape(3, -1))[np.triu_indices(3, 1)]
    report(done.returncode == 0 and abs(correlation).max() * np.sqrt(3 * MANY) < 5,
           "what is drawn of one draw is independent", correlation)
    data = arviz.from_netcdf("schools.h5")
    report(data["prior"].sizes["draw"] == MANY and data["prior_predictive"].y.dims == ("chain", "draw", "school"),
           "arviz opens prior and prior_predictive")
    run("name: eight_schools, posterior_predictive: true", "none.h5", draws=0)
    report(all(group("none.h5", g).equals(group("schools.h5", g)) for g in ("posterior", "posterior_predictive")),
           "the posterior is what it is without them")
    report(emass("verify", "schools.h5").returncode == 0, "emass verify draws them again")


def regressions():
    for model, shapes in {
        "logistic": {},
        "poisson": {},
        "linear, sigma: unknown, noise: student_t": {
            "sigma": (stats.t(3, scale=2.5), stats.t(3, scale=3)),
            "nu": (stats.gamma(2, scale=10), stats.gamma(2, scale=11)),
        },
        "negative_binomial": {"phi": (stats.invgamma(0.4, scale=0.3), stats.invgamma(0.4, scale=0.45))},
    }.items():
        done = run(f"name: {model}, data: table.csv, response: y, standardise: true, prior_scale: 0.5", "r.h5")
        prior, name = group("r.h5", "prior"), model.split(",")[0]
        assert done.returncode == 0, done.stderr
        law(f"{name}: beta", prior.beta, stats.norm(0, 0.5**0.5), stats.norm(0, 0.55**0.5 * 1.05))
        for shape, (right, twin) in shapes.items():
            if shape == "sigma":  # the half of it above zero
                u = [2 * law_.cdf(prior[shape]) - 1 for law_ in (right, twin)]
                report(z(u[0]) < 5 < z(u[1]), "linear: sigma is of its prior (a twin is not)", z(u[0]), z(u[1]))
            else:
                law(f"{name}: {shape}", prior[shape], right, twin)
    table = "name: logistic, data: table.csv, response: y, posterior_predictive: true"
    run(table, "on1.h5", draws=50)
    run(table, "on3.h5", draws=50, ranks=3)
    run(table, "shards.h5", "--set", "run.shards=2", draws=50, ranks=2)
    with open("on1.h5", "rb") as a, open("on3.h5", "rb") as b:
        report(a.read() == b.read(), "the same bytes on 1 and 3 ranks")
    report(group("on1.h5", "prior_predictive").equals(group("shards.h5", "prior_predictive")) and
           set(np.unique(group("on1.h5", "prior_predictive").y)) == {0, 1}, "the same predictions on 2 shards")


def networks():
    done = run("name: network, data: table.csv, response: y, layers: [{dense: 3}], prior_scale: {gamma: [3, 2]}, "
               "store_weights: true", "n.h5", draws=1000)
    assert done.returncode == 0, done.stderr
    prior = group("n.h5", "prior")
    law("network: the variance of a layer", prior.prior_variance, stats.invgamma(3, scale=2), stats.invgamma(3, scale=2.2))
    law("network: a weight", prior.weights[..., 0], stats.t(6, scale=(2 / 3) ** 0.5), stats.t(6, scale=0.95))


def refused():
    for model, why in {"gaussian": "not made of a prior", "normal_wishart": "flat prior of mu",
                       "banana": "not made of a prior"}.items():
        for command in ("run", "check"):
            with open("run.yaml", "w") as file:
                print(f"model: {{name: {model}}}\noutput: {{prior_draws: 5}}", file=file)
            done = emass(command, "run.yaml", *(["--output", "x.h5"] if command == "run" else []))
            said = done.stderr.splitlines()
            report(done.returncode == 2 and why in said[-1] and "output.prior_draws" in said[-1] and
                   not os.path.exists("x.h5"), f"{command}: {model} has none, and says why", done.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    random = np.random.default_rng(1)
    x = random.normal(size=(600, 2)).round(3)
    with open("table.csv", "w") as file:
        print("a,b,y", *(f"{a},{b},{i % 2}" for i, (a, b) in enumerate(x)), sep="\n", file=file)
    schools()
    regressions()
    networks()
    refused()
    os.chdir("/")
lib.finish()
