"""Measures of draws against the truth: RMSE, bias, spread, ESS, and divergence of histograms."""

import warnings

import arviz as az
import numpy as np


def ess(draws):
    """Of the mean; draws [chain][draw]."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(az.ess(draws, method="mean"))


def rmse(draws, truth):
    """Of single draws about the truth."""
    return float(np.sqrt(np.mean((draws - truth) ** 2)))


def spread(draws, reference):
    """Standard deviation over an exact sampler's: below 1 the chain is stuck, above it is hot."""
    return float(np.std(draws) / np.std(reference))


def bias(draws, reference):
    """Of the mean, in standard deviations of the posterior."""
    return float((np.mean(draws) - np.mean(reference)) / np.std(reference))


class Density:
    """exp(-U) / Z of one dimension, in bins of equal width."""

    def __init__(self, U, low, high, n_bin):
        fine = np.linspace(low, high, 200 * n_bin + 1)
        weight = np.exp(-U(fine))
        weight /= np.trapezoid(weight, fine)
        self.fine, self.value = fine, weight
        self.edges = fine[::200]
        cumulative = np.concatenate([[0], np.cumsum((weight[1:] + weight[:-1]) / 2 * np.diff(fine))])
        self.mass = np.diff(cumulative[::200])
        self.centre = (self.edges[1:] + self.edges[:-1]) / 2

    def histogram(self, draws):
        return np.histogram(draws, self.edges)[0] / draws.size

    def kl(self, draws):
        """KL(draws || truth) of the binned draws; infinite where they leave the bins."""
        seen = self.histogram(draws)
        if not np.all(np.isfinite(draws)) or seen.sum() < 0.99:
            return np.inf
        return self.kl_of_shares(seen)

    def kl_of_shares(self, seen):
        k = seen > 0
        return float(np.sum(seen[k] * np.log(seen[k] / self.mass[k])))


def tilted_well(x):
    return (x + 4) * (x + 1) * (x - 1) * (x - 3) / 14 + 0.5


def two_peaks(x):
    return x**4 - 2 * x**2


def one_peak(x):
    return x**2 / 2


def banana(x, y):
    return x**4 / 10 + (4 * (y + 1.2) - x**2) ** 2 / 2
