"""Densities whose evidence is known, for tests and benches. Those in C add the log likelihood at x [D] to *log_p and its
gradient to gradient [D]."""
import math

import numpy as np

# Two shells of radius 2 and width 0.1 about (-3.5, 0, ...) and (3.5, 0, ...) (Feroz, Hobson and Bridges 2009).
SHELLS = """
    double term[2], slope[2][D];
    for (int k = 0; k < 2; k++) {
        double square = 0;
        for (int i = 0; i < D; i++) {
            slope[k][i] = x[i] - (i == 0 ? 7 * k - 3.5 : 0);
            square += slope[k][i] * slope[k][i];
        }
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


def schools_integrand():
    """log tau on a grid, and p(y, log tau) e^30 of the eight schools times the weights of Simpson's rule; mu is integrated
    in closed form."""
    y = np.array([28, 8, -3, 7, -1, 1, 18, 12.0])
    sigma = np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
    u = np.linspace(-14, 14, 4001)
    terms = []
    for tau in np.exp(u):
        cov = np.diag(sigma**2 + tau**2) + 25
        log_p = -0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * math.pi * cov)[1])
        terms.append(math.exp(log_p + 30) * 2 / (5 * math.pi * (1 + tau**2 / 25)) * tau)
    weights = np.ones(len(u))
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return u, weights * terms * (u[1] - u[0]) / 3


def schools():
    """log p(y) of the eight schools."""
    return math.log(schools_integrand()[1].sum()) - 30


def schools_law():
    """log tau of the eight schools on a grid, and the posterior probability of each point."""
    u, terms = schools_integrand()
    return u, terms / terms.sum()


# 100,000 flips, 50,000 of them heads, of which each needs both of two coins with unknown p (Pigeons' first example).
COIN_FLIPS = """
    const double p = x[0] * x[1], slope = 50000 / p - 50000 / (1 - p);
    *log_p += lgamma(100001) - 2 * lgamma(50001) + 50000 * (log(p) + log1p(-p));
    gradient[0] += slope * x[1];
    gradient[1] += slope * x[0];
"""


def coin_flips():
    """With p1 and p2 uniform the density of p = p1 p2 is -log p, whose mean under Beta(50001, 50001) is a sum."""
    return math.log(sum(1 / k for k in range(50001, 100002))) - math.log(100001)


def logistic(x, y, scale, n_draw=200_000):
    """Of a logistic regression with coefficients N(0, scale^2), by draws of a t distribution about the mode, whose
    standard error must be below 0.005."""
    mode, size = np.zeros(x.shape[1]), x.shape[1]
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ mode))
        precision = (x * (p * (1 - p))[:, None]).T @ x + np.eye(size) / scale**2
        mode = mode + np.linalg.solve(precision, x.T @ (y - p) - mode / scale**2)
    random, degrees = np.random.default_rng(1), 10
    factor = np.linalg.cholesky(np.linalg.inv(precision))
    t = random.normal(size=(n_draw, size)) / np.sqrt(random.chisquare(degrees, n_draw) / degrees)[:, None]
    theta = mode + t @ factor.T
    log_t = (math.lgamma((degrees + size) / 2) - math.lgamma(degrees / 2) - size / 2 * math.log(degrees * math.pi)
             - np.log(np.diag(factor)).sum() - (degrees + size) / 2 * np.log1p((t**2).sum(1) / degrees))
    eta = theta @ x.T
    log_p = (eta @ y - np.logaddexp(0, eta).sum(1)
             - (theta**2).sum(1) / 2 / scale**2 - size * math.log(scale * math.sqrt(2 * math.pi)))
    most = (log_p - log_t).max()
    weight = np.exp(log_p - log_t - most)
    error = weight.std() / weight.mean() / math.sqrt(n_draw)
    assert error < 0.005, f"the evidence of the regression has a standard error of {error:.4f}"
    return math.log(weight.mean()) + most
