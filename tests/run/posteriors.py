#!/usr/bin/env python3
"""Posterior means and standard deviations against references that share no code with emass.

linear, gaussian, normal_wishart: closed forms. Heart and Australian: importance sampling from a
Student-t around the mode, in numpy. Deviations are in Monte Carlo standard errors of both sides; 4 of
them are allowed (6e-5 by chance, each). Skipped without numpy (analysis/venv) or EMASS_DATA.
"""
import csv
import io
import os
import tempfile

import lib
from lib import EMASS, report

lib.needs_packages("posteriors")

import numpy as np  # noqa: E402

DATA = os.environ.get("EMASS_DATA", "")


def sample(config, folder, seed):
    """Runs emass; rows of its summary by name."""
    path = os.path.join(folder, "run.yaml")
    with open(path, "w") as out:
        out.write(config)
    draws = os.path.join(folder, "run.h5")
    lib.limited(EMASS, "run", path, "--output", draws, "--overwrite", "--quiet", "--seed", seed)
    text = lib.limited(EMASS, "summary", draws, "--csv").stdout
    rows = list(csv.reader(io.StringIO(text)))
    return {row[0]: dict(zip(rows[0][1:], map(float, row[1:]))) for row in rows[1:]}


def worst(rows, names, mean, sd, mean_error=0.0, sd_error=0.0):
    """The largest deviation of means and sds; the MCSE of an sd is taken as sd / sqrt(2 ESS)."""
    z = 0.0
    for i, name in enumerate(names):
        row = rows[name]
        z = max(z, abs(row["mean"] - mean[i]) / np.hypot(row["mcse_mean"], np.broadcast_to(
            mean_error, np.shape(mean))[i]))
        sd_se = sd[i] / np.sqrt(2 * min(row["ess_bulk"], row["ess_tail"]))
        z = max(z, abs(row["sd"] - sd[i]) / np.hypot(sd_se, np.broadcast_to(
            sd_error, np.shape(sd))[i]))
    return z


def importance(x, y, variance, rng, n=200000):
    """Mean and sd of the logistic posterior and their standard errors, by importance sampling."""
    dim = x.shape[1]

    def log_density(b):
        a = b @ x.T
        return a @ y - np.logaddexp(0, a).sum(-1) - (b * b).sum(-1) / (2 * variance)

    mode = np.zeros(dim)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ mode))
        hessian = (x.T * (p * (1 - p))) @ x + np.eye(dim) / variance
        mode += np.linalg.solve(hessian, x.T @ (y - p) - mode / variance)
    lower = np.linalg.cholesky(np.linalg.inv(hessian))
    freedom = 8
    z = rng.standard_normal((n, dim))
    chi = rng.chisquare(freedom, n) / freedom
    t = z / np.sqrt(chi)[:, None]
    log_proposal = -0.5 * (freedom + dim) * np.log1p((t * t).sum(1) / freedom)
    b = mode + t @ lower.T
    log_weight = np.concatenate([log_density(part) for part in np.array_split(b, 50)])
    weight = np.exp(log_weight - log_proposal - (log_weight - log_proposal).max())
    weight /= weight.sum()
    mean = weight @ b
    sd = np.sqrt(weight @ (b - mean) ** 2)
    effective = 1 / (weight ** 2).sum()
    return mean, sd, sd / np.sqrt(effective), sd / np.sqrt(2 * effective)


def check_logistic(name, file, positive, folder):
    if not DATA:
        lib.skip(name, "EMASS_DATA is not set")
        return
    table = np.loadtxt(os.path.join(DATA, file))
    x = table[:, :-1]
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    y = (table[:, -1] == positive).astype(float)
    x = np.column_stack([np.ones(len(x)), x])
    reference = importance(x, y, 10.0, np.random.default_rng(1))
    for seed in (1, 2, 3):
        rows = sample(f"""
model:
  name: logistic
  data: {os.path.join(DATA, file)}
  positive: {positive}
  standardise: true
  prior_scale: 10
sampler: {{name: hmc}}
run: {{chains: 4, warmup: 500, draws: 2000}}
""", folder, seed)
        names = [n for n in rows if n.startswith("beta[")]
        intercept = next(n for n in names if "intercept" in n)
        names = [intercept] + [n for n in names if n != intercept]
        z = worst(rows, names, *reference)
        report(len(names) == len(reference[0]) and z < 4, f"{name}, seed {seed}: worst {z:.2f} MCSE")


def check_linear(folder):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 4))
    y = x @ np.array([1.0, -2, 0.5, 0]) + 0.3 + rng.standard_normal(300) * 0.7
    path = os.path.join(folder, "linear.csv")
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", fmt="%.17g")
    design = np.column_stack([np.ones(300), x])
    covariance = np.linalg.inv(design.T @ design / 0.49 + np.eye(5) / 3.0)
    mean = covariance @ design.T @ y / 0.49
    for seed in (1, 2, 3):
        rows = sample(f"""
model: {{name: linear, data: {path}, sigma: 0.7, prior_scale: 3}}
sampler: {{name: hmc}}
run: {{chains: 4, warmup: 500, draws: 2000}}
""", folder, seed)
        names = [n for n in rows if n.startswith("beta[")]
        intercept = next(n for n in names if "intercept" in n)
        names = [intercept] + [n for n in names if n != intercept]
        z = worst(rows, names, mean, np.sqrt(np.diag(covariance)))
        report(z < 4, f"linear, seed {seed}: worst {z:.2f} MCSE")


def check_gaussian(folder):
    rng = np.random.default_rng(4)
    a = rng.standard_normal((6, 6))
    precision = a @ a.T + 0.1 * np.eye(6)
    mean = rng.standard_normal(6) * 10
    np.savetxt(os.path.join(folder, "precision.csv"), precision, delimiter=",", fmt="%.17g")
    np.savetxt(os.path.join(folder, "mean.csv"), mean, fmt="%.17g")
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    for estimator in ("fisher", "variance", "gradient", "momentum", "none"):
        rows = sample(f"""
model: {{name: gaussian, mean: mean.csv, precision: precision.csv}}
sampler: {{name: hmc}}
mass: {{estimator: {estimator}}}
run: {{chains: 4, warmup: 1000, draws: 2000}}
""", folder, 7)
        z = worst(rows, list(rows), mean, sd)
        report(len(rows) == 6 and z < 4, f"gaussian, {estimator}: worst {z:.2f} MCSE")


def check_normal_wishart(folder):
    """tau ~ Gamma((N - 1 + nu)/2, (sum (x - mean)^2 + 1/V0)/2), mu | tau ~ N(mean, 1/(N tau))."""
    x = np.random.default_rng(5).standard_normal(5000)
    path = os.path.join(folder, "normal.csv")
    np.savetxt(path, x, fmt="%.17g")
    shape, rate = 5000 / 2, (((x - x.mean()) ** 2).sum() + 1) / 2
    mean = [x.mean(), shape / rate]
    # mu is a Student-t of 2 shape degrees of freedom
    sd = [np.sqrt(rate / (shape - 1) / 5000), np.sqrt(shape) / rate]
    report(abs(sd[0] - 0.0141) < 4e-4 and abs(sd[1] - 0.0200) < 6e-4, "normal_wishart: known sds")
    for seed in (1, 2, 3):
        rows = sample(f"""
model: {{name: normal_wishart, data: {path}}}
sampler: {{name: hmc}}
run: {{chains: 4, warmup: 500, draws: 2000}}
""", folder, seed)
        z = worst(rows, ["mu", "tau"], mean, sd)
        report(z < 4, f"normal_wishart, seed {seed}: worst {z:.2f} MCSE")


with tempfile.TemporaryDirectory() as work:
    check_linear(work)
    check_gaussian(work)
    check_normal_wishart(work)
    check_logistic("heart", "heart/heart.dat", 2, work)
    check_logistic("australian", "australian/australian.dat", 1, work)
lib.finish()
