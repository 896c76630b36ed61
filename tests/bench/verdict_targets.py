"""The targets of verdict.py: Stan programs (verdict/), their data, and what is known of them.

Means, standard deviations and weights are exact, or come from the trapezoidal rule on a grid so fine
that its error is far below what draws can show.
"""

import hashlib
import itertools
import json
import math
import pathlib
import statistics

import numpy as np

PROGRAMS = pathlib.Path(__file__).with_name("verdict")


class Target:
    """moments: {name: (mean, sd)}, where sd is None if it is not judged. weights: those of the modes, and
    memberships(draws) the array [mode, chain, draw] of which they are the means. derive(draws): further
    quantities that moments may name. draws: {name: array [chain, draw]}. Improper: whatever is said to
    have converged has not."""

    def __init__(self, name, program, data, moments, *, weights=(), memberships=None, derive=None, improper=False):
        self.name = name
        self.program = PROGRAMS / f"{program}.stan"
        self.data = json.dumps(data)
        self.moments = moments
        self.weights = np.asarray(weights)
        self.memberships = memberships
        self.derive = derive
        self.improper = improper

    def digest(self):
        """Of all that decides what a run of Stan finds and whether it is right."""
        known = json.dumps([{name: [m if m is None else round(float(m), 6) + 0.0 for m in pair]
                             for name, pair in self.moments.items()}, self.weights.round(6).tolist(), self.improper])
        return hashlib.sha256((self.program.read_text() + self.data + known).encode()).hexdigest()[:12]

    def seed(self, chains, number):
        """Other streams for each target and each number of chains, so that all runs are independent."""
        return int(hashlib.sha256(f"{self.digest()} {chains}".encode()).hexdigest()[:6], 16) + number


def mesh_moments(log_density, names, lower, upper, n):
    """{name: (mean, sd)} of a density on the box, which is 0 at its edges. log_density takes one array
    [point, dim]."""
    axis = np.linspace(lower, upper, n)
    points = np.stack(np.meshgrid(*[axis] * len(names), indexing="ij"), axis=-1).reshape(-1, len(names))
    log_p = np.concatenate([log_density(part) for part in np.array_split(points, max(1, len(points) // 50000))])
    p = np.exp(log_p - log_p.max())
    edge = p[(np.abs(points - lower) < 1e-9).any(axis=1) | (np.abs(points - upper) < 1e-9).any(axis=1)]
    if edge.max() > 1e-8:
        raise ValueError(f"the box of {', '.join(names)} is too small: its edge has {edge.max():.2g} of the density")
    p /= p.sum()
    mean = p @ points
    sd = np.sqrt(p @ (points - mean) ** 2)
    return {name: (mean[i], sd[i]) for i, name in enumerate(names)}


def normal_quantiles(n, centre):
    """n data that look like draws of N(centre, 1), the same ones always."""
    law = statistics.NormalDist(centre, 1)
    return [round(law.inv_cdf((i + 0.5) / n), 6) for i in range(n)]


# ---- mixtures of normal laws ----

def modes(name, weight, centre, sd):
    """Of K modes in D dimensions: weight [K], centre and sd [K, D]. A draw belongs to mode k with the
    posterior probability of that: its mean is the weight, whether or not modes overlap."""
    weight, centre = np.asarray(weight, float), np.asarray(centre, float)
    sd = np.broadcast_to(np.asarray(sd, float), centre.shape)
    mean = weight @ centre
    total = np.sqrt(weight @ (sd**2 + centre**2) - mean**2)
    names = [f"x[{i + 1}]" for i in range(centre.shape[1])]

    def memberships(draws):
        x = np.stack([draws[name] for name in names], axis=-1)
        log_p = np.stack([math.log(w) - np.log(s).sum() - 0.5 * (((x - c) / s) ** 2).sum(axis=-1)
                          for w, c, s in zip(weight, centre, sd)])
        p = np.exp(log_p - log_p.max(axis=0))
        return p / p.sum(axis=0)

    return Target(name, "modes", {"K": len(weight), "D": len(names), "weight": weight.tolist(),
                                  "centre": centre.tolist(), "sd": sd.tolist()},
                  {n: (mean[i], total[i]) for i, n in enumerate(names)}, weights=weight, memberships=memberships)


def along_first(d, *centres):
    """Centres that differ in the first coordinate."""
    return [[c] + [0.0] * (d - 1) for c in centres]


def mixtures():
    for d in (1, 5, 20):
        yield modes(f"near, d {d}", [0.5, 0.5], along_first(d, -2, 2), 1)
    for d in (5, 20):
        yield modes(f"near along the diagonal, d {d}", [0.5, 0.5], [[-2] * d, [2] * d], 1)
    yield modes("near, 90/10, d 1", [0.9, 0.1], [[-2], [2]], 1)
    for title, weight in (("50/50", [0.5, 0.5]), ("90/10", [0.9, 0.1]), ("10/90", [0.1, 0.9])):
        for d in (1, 5, 20):
            yield modes(f"far, {title}, d {d}", weight, along_first(d, -7, 6), 1)
    for d in (1, 5, 20):
        yield modes(f"narrow and wide, d {d}", [0.5, 0.5], along_first(d, -6, 9), [[1] * d, [5] * d])
    angle = 2 * math.pi * np.arange(8) / 8
    yield modes("circle of 8", [1 / 8] * 8, 10 * np.stack([np.cos(angle), np.sin(angle)], axis=1).round(9), 1)
    for title, places, sd in (("near", (-6, -3, 0, 3, 6), 0.8), ("far", (-14, -8, -2, 4, 10), 1)):
        yield modes(f"grid of 5 x 5, {title}", [1 / 25] * 25, list(itertools.product(places, places)), sd)


def labels(k, centres, n_each):
    """Means of a mixture in any order: each of the K! orders has the same weight."""
    y = sum((normal_quantiles(n_each, c) for c in centres), [])
    names = [f"mu[{i + 1}]" for i in range(k)]
    orders = list(itertools.permutations(range(k)))

    def log_density(mu):
        each = [-0.5 * (datum - mu) ** 2 for datum in y]
        return -0.5 * ((mu / 5) ** 2).sum(axis=1) + sum(np.log(np.exp(e).sum(axis=1)) for e in each)

    def memberships(draws):
        order = np.argsort(np.stack([draws[name] for name in names]), axis=0)
        return np.stack([(order == np.reshape(o, (k, 1, 1))).all(axis=0) for o in orders]).astype(float)

    return Target(f"labels of {k}", "labels", {"N": len(y), "K": k, "y": y},
                  mesh_moments(log_density, names, -9, 9, {2: 300, 3: 100}[k]),
                  weights=[1 / len(orders)] * len(orders), memberships=memberships)


# ---- one mode, or none ----

def funnel(d=10):
    """The sd of x[i] is known, but its MCSE is not: the variance of x^2 lies where v > 18."""
    n = d - 1
    return Target("funnel, d 10", "funnel", {"D": n}, {"v": (0.0, 3.0)} | {f"x[{i + 1}]": (0.0, None) for i in range(n)})


def banana(width=0.3):
    """x ~ N(1, 1), y ~ N(x^2, width): E x^2 = 2, Var x^2 = 2 + 4."""
    return Target("banana", "banana", {"width": width}, {"x": (1.0, 1.0), "y": (2.0, math.sqrt(6 + width**2))})


def product(n=100000, k=25000):
    """s = p1 p2 has the prior -log s; given s, p1 has the density 1 / p1 on (s, 1)."""
    sd = math.sqrt(k * (n - k) / n**3)
    s = np.linspace(k / n - 12 * sd, k / n + 12 * sd, 20001)
    log_p = k * np.log(s) + (n - k) * np.log1p(-s) + np.log(-np.log(s))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean_s, mean = p @ s, p @ ((1 - s) / -np.log(s))
    one = mean, math.sqrt(p @ ((1 - s**2) / (-2 * np.log(s))) - mean**2)
    return Target("product p1 p2", "product", {"N": n, "k": k},
                  {"p1": one, "p2": one, "p1 p2": (mean_s, math.sqrt(p @ (s - mean_s) ** 2))},
                  derive=lambda draws: {"p1 p2": draws["p1"] * draws["p2"]})


def gaussian(d=20, rho=0.9):
    scale = [round(10 ** (-2 + 4 * i / (d - 1)), 6) for i in range(d)]
    return Target(f"correlated normal, d {d}", "gaussian", {"D": d, "rho": rho, "scale": scale},
                  {f"x[{i + 1}]": (0.0, s) for i, s in enumerate(scale)})


def logistic():
    a, b = np.array(normal_quantiles(60, 0)), np.cos(np.arange(60)).round(6)
    x = np.stack([np.ones(60), a, b], axis=1)
    y = (0.3 + 1.2 * a - 0.8 * b + 1.5 * np.sin(7 * np.arange(60)) > 0).astype(int)

    def log_density(beta):
        eta = beta @ x.T
        return -0.5 * ((beta / 2.5) ** 2).sum(axis=1) + eta @ y - np.logaddexp(0, eta).sum(axis=1)

    return Target("logistic, d 3", "logistic", {"N": 60, "D": 3, "X": x.tolist(), "y": y.tolist()},
                  mesh_moments(log_density, [f"beta[{i + 1}]" for i in range(3)], -8, 12, 80))


def all_targets():
    return [*mixtures(), labels(2, (-1.5, 1.5), 30), labels(3, (-4, 0, 4), 15), funnel(), banana(), product(),
            Target("flat along x1 - x2", "flat_sum", {}, {}, improper=True),
            Target("flat along b", "flat_one", {"N": 20, "y": normal_quantiles(20, 1)}, {}, improper=True),
            gaussian(), logistic()]
