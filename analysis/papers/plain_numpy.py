"""The papers' samplers in plain numpy, for their time alone: their draws are not used. They are timed in
rounds with the runs of emass they are held against; of each the smallest time counts."""

import json
import time

import h5py
import numpy as np

SHAPES = {"synthetic": (2000, 2), "australian": (690, 14), "heart": (270, 13)}  # of 000, Table 3


def with_gradient(steps, eps=0.1, friction=3.0, noise=4.0):
    random = np.random.default_rng(1)
    scale = np.sqrt(2 * eps * friction - eps**2 * noise)
    theta, p = np.zeros(1), np.zeros(1)
    for _ in range(steps):
        gradient = 4 * theta**3 - 4 * theta + np.sqrt(noise) * random.standard_normal(1)
        p = p - eps * gradient - eps * friction * p + scale * random.standard_normal(1)
        theta = theta + eps * p
    return theta


def with_data(steps, X, y, eps=1e-4, friction=13.0, size=1000):
    random = np.random.default_rng(1)
    scale = np.sqrt(2 * eps * friction)
    theta, p = np.zeros(5), np.zeros(5)
    for _ in range(steps):
        rows = random.integers(0, len(y), size)
        x = X[rows]
        gradient = len(y) / size * (x.T @ (x @ theta - y[rows])) + theta
        p = p - eps * gradient - eps * friction * p + scale * random.standard_normal(5)
        theta = theta + eps * p
    return theta


def logistic_gradient(theta, X, y):
    """Of -log p, with a prior N(0, 10)."""
    return X.T @ (1 / (1 + np.exp(-(X @ theta))) - y) + theta / 10


def hmc(iterations, X, y, eps=0.01):
    random = np.random.default_rng(1)
    theta = np.zeros(X.shape[1])

    def energy(theta, p):
        logits = X @ theta
        return np.logaddexp(0, logits).sum() - y @ logits + theta @ theta / 20 + p @ p / 2

    for _ in range(iterations):
        new, p = theta, random.standard_normal(theta.size)
        before = energy(theta, p)
        p = p - eps / 2 * logistic_gradient(new, X, y)
        for step in range(10):
            new = new + eps * p
            p = p - eps / (2 if step == 9 else 1) * logistic_gradient(new, X, y)
        if np.log(random.random()) < before - energy(new, p):
            theta = new
    return theta


def sghmc(iterations, X, y, eps=1e-3, friction=1.0, size=100):
    random = np.random.default_rng(1)
    theta, p = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    scale = np.sqrt(2 * eps * friction)
    for _ in range(10 * iterations):
        rows = random.integers(0, len(y), size)
        gradient = len(y) / size * logistic_gradient(theta, X[rows], y[rows])
        p = p - eps * gradient - eps * friction * p + scale * random.standard_normal(theta.size)
        theta = theta + eps * p
    return theta


def tasks(folder):
    """{name: (function of a number of steps, and such a number)}."""
    out = {"003/with-gradient": (with_gradient, 50000)}
    if (folder / "linear.h5").exists():
        with h5py.File(folder / "linear.h5") as file:
            table = file["table"][:]
        out["003/with-data"] = (lambda n: with_data(n, table[:, :5], table[:, 5]), 50000)
    random = np.random.default_rng(1)
    for name, shape in SHAPES.items():
        X, y = random.standard_normal(shape), random.integers(0, 2, shape[0])
        out[f"000/{name}/hmc"] = (lambda n, X=X, y=y: hmc(n, X, y), 300)
        out[f"000/{name}/sghmc"] = (lambda n, X=X, y=y: sghmc(n, X, y), 300)
    return out


def measure(folder, shorten=1):
    """One round of all, added to those that were kept."""
    kept = folder / "numpy.json"
    rounds = json.loads(kept.read_text()) if kept.exists() else {}
    for name, (function, steps) in tasks(folder).items():
        steps = max(steps // shorten, 1)
        begin = time.perf_counter()
        function(steps)
        rounds.setdefault(name, []).append((time.perf_counter() - begin) / steps)
    kept.write_text(json.dumps(rounds))


def seconds(folder):
    """{name: the smallest, of one step}; those that were never measured are not there."""
    kept = folder / "numpy.json"
    return {name: min(all_) for name, all_ in json.loads(kept.read_text()).items()} if kept.exists() else {}
