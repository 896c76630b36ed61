"""How well calibrated the predictions of chains and of their ensemble are, and would be at another temperature."""

import numpy as np

BINS = 15  # as emass has them
TEMPERATURES = np.exp(np.linspace(np.log(0.4), np.log(2.5), 93))


def normalised(logs):
    p = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def logs_of(p):
    return np.log(np.maximum(np.asarray(p, float), 1e-38))


def multiplied(p):
    """The geometric mean over chains, of p[chain, observation, class]."""
    return normalised(logs_of(p).mean(axis=0))


def nlls_of(p, truth):
    """Of each observation."""
    return -logs_of(p)[np.arange(len(truth)), truth]


def terms_of(p, truth):
    """Of each observation: its bin of confidence, how much surer than right, and whether right, NLL, Brier score."""
    happened = np.zeros_like(p)
    happened[np.arange(len(truth)), truth] = 1
    sure, right = p.max(axis=1), p.argmax(axis=1) == truth
    briers = ((p - happened)**2).sum(axis=1)
    return np.minimum((sure * BINS).astype(int), BINS - 1), sure - right, [right, nlls_of(p, truth), briers]


def scores_from(terms, times):
    """Times 100: accuracy, NLL, Brier score, expected calibration error, of observations that count so many times."""
    bins, gap, others = terms
    off = np.abs(np.bincount(bins, gap * times, BINS)).sum()
    return 100 * np.array([(x * times).sum() for x in others] + [off]) / times.sum()


def scores_of(p, truth):
    return scores_from(terms_of(p, truth), np.ones(len(truth)))


def tempered(p, truth):
    """p^(1/T), of every other observation with the T by which the others have the least NLL."""
    logs, out = logs_of(p), np.empty(p.shape)
    for part in (0, 1):
        others = logs[1 - part::2], truth[1 - part::2]
        nll = [nlls_of(normalised(others[0] / t), others[1]).mean() for t in TEMPERATURES]
        out[part::2] = normalised(logs[part::2] / TEMPERATURES[np.argmin(nll)])
    return out


def unavoidable(p, draws=200):
    """The calibration error that p would have of as many observations if they came about as it says, times 100."""
    generator = np.random.default_rng(0)
    sure = p.max(axis=1)
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = (np.bincount(bins, sure - (generator.random(len(sure)) < sure), BINS) for _ in range(draws))
    return 100 * np.mean([np.abs(gap).sum() for gap in gaps]) / len(sure)


def gains(chains, mean, truth, draws=1000):
    """Times 100, what the scores of the ensemble are less those of a chain, the mean over chains; and the standard
    errors of that, by as many test observations drawn with replacement, the same for all."""
    generator, n = np.random.default_rng(0), len(truth)
    ensemble, single = terms_of(mean, truth), [terms_of(p, truth) for p in chains]

    def gain(times):
        return scores_from(ensemble, times) - np.mean([scores_from(of, times) for of in single], axis=0)

    drawn = [gain(np.bincount(generator.integers(0, n, n), minlength=n)) for _ in range(draws)]
    return gain(np.ones(n)), np.std(drawn, axis=0)


def compare(chains, mean, truth):
    """Rows (whose, scores, those at a temperature of the other half): of a chain the means over chains."""
    rows = [("one chain, mean", np.mean([scores_of(p, truth) for p in chains], axis=0),
             np.mean([scores_of(tempered(p, truth), truth) for p in chains], axis=0))]
    rows += [(words, scores_of(p, truth), scores_of(tempered(p, truth), truth))
             for words, p in (("all, averaged", mean), ("all, multiplied", multiplied(chains)))]
    return rows
