"""What a table says of the papers' claims, in one line computed from the runs: every case of a claim
with how many standard errors it is on the claim's side."""

import warnings
from dataclasses import dataclass

import numpy as np

from papers.measure import ess

TELLS = 4  # standard errors: fewer could be chance, in one of the hundred cases of a page

EXPLAINED = f"""A verdict is computed from the files of draws, as all numbers are. In brackets: by how many
    standard errors a case is on the claim's side, or, where equality is claimed, apart. They are Monte
    Carlo's, or those of seeds or of test cases where these are what varies. A claim is undecided
    if they are fewer than {TELLS}."""


@dataclass(frozen=True)
class Estimate:
    value: float
    error: float = 0.0  # its standard error

    def __sub__(self, other):
        return Estimate(self.value - other.value, float(np.hypot(self.error, other.error)))


# ---- numbers with their errors ----


def of_mean(draws):
    """The mean of correlated draws [chain][draw]."""
    draws = np.atleast_2d(draws)
    return Estimate(float(draws.mean()), float(draws.std() / np.sqrt(ess(draws))))


def of_runs(values):
    """The mean over independent runs, chains or seeds; no error of fewer than two."""
    values = np.asarray(values, float).ravel()
    if values.size < 2:
        return Estimate(float(values.mean()) if values.size else float("nan"), float("nan"))
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size)))


def of_share(share, n):
    """A share of n cases, each by itself."""
    return Estimate(share, float(np.sqrt(share * (1 - share) / n)))


def of_blocks(function, parts):
    """A function of sums over blocks of draws, parts [block]...: by leaving out one block after the other."""
    parts = np.asarray(parts, float)
    total, n = parts.sum(axis=0), len(parts)
    without = np.array([function(total - part) for part in parts])
    return Estimate(float(function(total)), float(np.sqrt((n - 1) * np.var(without))))


def of_kl(density, draws, n_block=20):
    """The KL divergence of binned draws [chain][draw], by blocks of all chains at one time."""
    blocks = np.array_split(np.atleast_2d(draws), n_block, axis=1)
    if not np.isfinite(density.kl(draws)):
        return Estimate(float("inf"))
    return of_blocks(
        lambda seen: density.kl_of_shares(seen / seen.sum()), [density.histogram(b) * b.size for b in blocks]
    )


# ---- cases, in standard errors ----


def below(small, large):
    """How far `small` is below `large`; NaN where that cannot be said."""
    difference = large - small
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(np.float64(difference.value) / np.float64(difference.error))


def in_pairs(small, large):
    """The same of runs that were made in pairs, seed by seed, as many as both have; NaN where one diverged."""
    pairs = min(len(small), len(large))
    difference = of_runs(np.asarray(large, float)[:pairs] - np.asarray(small, float)[:pairs])
    return below(Estimate(0.0), difference)


def apart(*pairs):
    """How far the two of a pair are apart, of the pair where that is farthest."""
    return max((abs(below(a, b)) for a, b in pairs), default=float("nan"))


@dataclass(frozen=True)
class Claim:
    words: str
    cases: dict  # a name, or "": standard errors; those that are NaN are left out
    equal: bool = False  # the claim is that there is no difference

    def sides(self):
        """{yes, undecided, no: names} in standard errors."""
        known = {name: z for name, z in self.cases.items() if not np.isnan(z)}
        if self.equal:
            return {
                "yes": {name: z for name, z in known.items() if z < TELLS},
                "no": {name: z for name, z in known.items() if z >= TELLS},
            }
        return {
            "yes": {name: z for name, z in known.items() if z >= TELLS},
            "undecided": {name: z for name, z in known.items() if abs(z) < TELLS},
            "the opposite": {name: z for name, z in known.items() if z <= -TELLS},
        }

    def line(self):
        sides = [
            f"{side} {', '.join(f'{name} ({size(z)})'.strip() for name, z in cases.items())}"
            for side, cases in self.sides().items()
            if cases
        ]
        return f"{self.words}: {'; '.join(sides)}." if sides else ""


def size(z):
    return "> 99" if z > 99 else "< -99" if z < -99 else f"{z:.1f}"


def verdict(*claims):
    """One line of claims, and of sentences that stand as they are; empty where nothing was run."""
    lines = [claim.line() if isinstance(claim, Claim) else claim for claim in claims]
    return " ".join(line for line in lines if line)
