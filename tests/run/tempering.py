"""What tempered runs say beside the truth: tempering.py modes WEIGHT | linear TABLE | schools FILE.h5..."""
import csv
import math
import sys

import h5py
import numpy as np

LIMIT = 4.5  # standard errors


def linear(path):
    """log p(y) of y ~ N(a + b (x - mean x), 0.5^2) with a, b ~ N(0, 3^2)."""
    rows = list(csv.DictReader(open(path)))
    x, y = (np.array([float(r[name]) for r in rows]) for name in ('x', 'y'))
    design = np.c_[np.ones(len(x)), x - x.mean()]
    cov = 0.25 * np.eye(len(y)) + 9 * design @ design.T
    return -0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * math.pi * cov)[1])


def schools():
    """log p(y) of the eight schools: mu is integrated in closed form, tau by Simpson's rule."""
    y = np.array([28, 8, -3, 7, -1, 1, 18, 12.0])
    sigma = np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
    u = np.linspace(-14, 14, 4001)  # log tau
    terms = []
    for tau in np.exp(u):
        cov = np.diag(sigma**2 + tau**2) + 25
        log_p = -0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * math.pi * cov)[1])
        terms.append(math.exp(log_p + 30) * 2 / (5 * math.pi * (1 + tau**2 / 25)) * tau)
    weights = np.ones(len(u))
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return math.log(weights @ terms * (u[1] - u[0]) / 3) - 30


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def main():
    what, *rest = sys.argv[1:]
    weight = float(rest.pop(0)) if what == 'modes' else None
    truth = {'modes': lambda: 0.0, 'linear': lambda: linear(rest.pop(0)), 'schools': schools}[what]()
    scores, off = [], []
    for path in rest:
        with h5py.File(path) as file:
            at, group = file.attrs, file['tempering']
            scores.append((at['log_evidence'] - truth) / at['log_evidence_error'])
            for leg in 0, 1:
                z = (group['log_evidence'][leg] - truth) / group['log_evidence_error'][leg]
                assert abs(z) < LIMIT, (path, 'leg', leg, z)
            print(path, 'log evidence', at['log_evidence'], 'truth', truth, text(at['tempering']))
            if weight is not None:  # chains are independent: the error is from how they differ
                low = (file['posterior/theta'][..., 0] < 0).mean(axis=1)
                off.append(low - weight)
    assert max(np.abs(scores)) < LIMIT, scores
    assert abs(np.mean(scores)) < LIMIT / math.sqrt(len(scores)), scores
    if off:
        off = np.concatenate(off)
        error = off.std(ddof=1) / math.sqrt(len(off))
        print('weight', weight, 'off by', off.mean(), '+-', error)
        assert error < 0.03 and abs(off.mean()) < LIMIT * error, (off.mean(), error)


main()
