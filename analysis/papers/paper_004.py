"""Paper 004: integrators of the multivariate thermostat; figures 1, 2 and 6, table 2."""

import gzip
import os
from pathlib import Path

import numpy as np
from scipy.special import expit

from papers.measure import Density, ess, tilted_well
from papers.page import panels
from papers.verdict import Claim, Estimate, below, of_kl, of_runs, of_share

INTEGRATORS = {"splitting": ("mSGNHT-S", "C0"), "euler": ("mSGNHT-E", "C1")}
METHODS = {"msgnht-s": "mSGNHT-S", "msgnht-e": "mSGNHT-E", "sghmc-s": "SGHMC-S", "sghmc-e": "SGHMC-E"}
TABLE_2 = {"msgnht-s": 84.95, "msgnht-e": 84.72, "sghmc-s": 84.56, "sghmc-e": 84.51}  # percent
WELL = Density(tilted_well, -6, 6, 120)


def write(page, results):
    page.heading("004: high-order integrators for the thermostat")
    write_figure_1(page, results)
    write_figure_2(page, results)
    write_a9a(page, results)


def settings(results, experiment, methods):
    """The last parts of the names of an experiment's runs that were made by any of the methods, in the
    order of the table."""
    prefixes = [f"004/{experiment}/{method}/" for method in methods]
    names = [n.removeprefix(p) for p in prefixes for n in results.runs if n.startswith(p) and results.has(n)]
    return list(dict.fromkeys(names))


# ---- the double well ----


def well_chains(results, name):
    """[chain][draw] of the chains that did not diverge, and how many did."""
    lost = results.draws(name, "diverging", "sample_stats").mean(axis=1) > 0.01
    return results.draws(name, "theta")[~lost], int(lost.sum())


def write_figure_1(page, results):
    page.heading("Fig. 1: a double well, KL against the step size", 3)
    rows, curves, kl = [], {integrator: [] for integrator in INTEGRATORS}, {}
    for h in settings(results, "well", INTEGRATORS):
        row = [h]
        for integrator in INTEGRATORS:
            if not results.has(f"004/well/{integrator}/{h}"):
                row += [None] * 4
                continue
            chains, lost = well_chains(results, f"004/well/{integrator}/{h}")
            row += (
                [float(np.median([WELL.kl(chain) for chain in chains])), WELL.kl(chains), ess(chains), lost]
                if len(chains)
                else [None, None, None, lost]
            )
            if len(chains):
                kl[h, integrator] = of_kl(WELL, chains)
                curves[integrator].append((float(h), row[-3]))
        rows.append([*row, row[6] / row[2] if row[2] and row[6] else None])
    if not rows:
        return page.leave_out()
    figure, axes = panels(1, 1, 5, 3)
    for integrator, (label, color) in INTEGRATORS.items():
        if curves[integrator]:
            axes[0, 0].loglog(*zip(*curves[integrator]), "o-", ms=3, color=color, label=label)
    axes[0, 0].set(xlabel="step size h", ylabel="KL divergence, all chains")
    axes[0, 0].legend()
    page.figure("004_fig1", figure, "KL divergence of the draws from the truth; a curve ends where all chains diverge.")
    both = [h for h, integrator in kl if integrator == "euler" and (h, "splitting") in kl]
    page.verdict(
        Claim(
            "Splitting is nearer to the truth than Euler, by the KL of all chains",
            {f"at {h}": below(kl[h, "splitting"], kl[h, "euler"]) for h in both},
        )
    )
    page.table(
        ["h", "S: KL of one", "of all", "ESS", "lost", "E: KL of one", "of all", "ESS", "lost", "E / S, of all"], rows
    )
    page.say("""The paper has a plot: splitting (S) below Euler (E) everywhere, the more so at
        large steps, as here. One: the median over chains, of a million steps each, as in the
        paper. All: of the chains together, whose Monte Carlo error is smaller; at small h it is
        all there is, as a million steps of 0.001 cross between the wells too seldom with either
        integrator. Lost: chains that diverged, left out; the paper's curves do not tell whether
        any did.""")


def write_figure_2(page, results):
    page.heading("Fig. 2: the first 100000 samples", 3)
    steps = [h for h in ("0.001", "0.2") if results.has(*(f"004/well/{i}/{h}" for i in INTEGRATORS))]
    if not steps:
        return page.leave_out()
    figure, axes = panels(3, len(steps))
    for column, h in enumerate(steps):
        for row, (integrator, (label, color)) in enumerate(INTEGRATORS.items()):
            draws = well_chains(results, f"004/well/{integrator}/{h}")[0][0]
            ax = axes[row, column]
            ax.stairs(WELL.histogram(draws[: draws.size // 10]) / np.diff(WELL.edges), WELL.edges, color=color)
            ax.plot(WELL.fine, WELL.value, color="black", lw=0.8)
            ax.set_title(f"{label}, h = {h}")
            name = f"004/well/{integrator}/{h}"
            thermostat = results.draws(name, "thermostat", "sample_stats")[0]
            mean = np.cumsum(thermostat) / np.arange(1, thermostat.size + 1)
            axes[2, column].plot(mean[: draws.size // 10 : 10], color=color, lw=0.8)
        axes[2, column].axhline(1, color="black", lw=0.8)
        axes[2, column].set(ylim=(-1, 3), xlabel="hundreds of steps")
        axes[2, column].set_title("mean of the thermostat so far")
    page.figure(
        "004_fig2",
        figure,
        """The first tenth of a chain, the density in black; below, the mean of the thermostat so
        far, which should become B = 1, the noise it has to absorb.""",
    )
    page.say("""At h = 0.2 as in the paper: Euler over-concentrates on the mode. At 0.001 the
        paper's Euler chain has not seen all of the space, its splitting chain has; ours agree
        with each other, as two integrators with the same random numbers must at so small a
        step: in 100 units of time it is chance what a chain has seen. At
        0.2 the mean of the thermostat is soon level, at 0.001 after half of the plot.""")


# ---- a9a ----


def read_a9a(name):
    """Features after a one [n][124], and which labels are positive; None without the data."""
    path = Path(os.environ.get("EMASS_DATA", ""), "a9a", name)
    if "EMASS_DATA" not in os.environ or not path.exists():
        return None
    lines = [line.split() for line in gzip.open(path, "rt")]
    X = np.zeros((len(lines), 124), np.float32)
    X[:, 0] = 1
    for row, words in zip(X, lines):
        for word in words[1:]:
            column, value = word.split(":")
            row[int(column)] = float(value)
    return X, np.array([float(words[0]) > 0 for words in lines])


def probabilities(beta, X):
    return expit(X @ beta.T.astype(np.float32))


def accuracy(probability, label):
    return 100 * float(np.mean((probability > 0.5) == label))


def write_a9a(page, results):
    page.heading("Table 2: logistic regression on a9a, test accuracy in percent", 3)
    columns = settings(results, "a9a", METHODS)
    test, train = read_a9a("a9a.t.gz"), read_a9a("a9a.gz")
    if test is None or train is None or not columns:
        return page.leave_out()
    X, label = test
    rows, curves, correct = [], {}, {}
    for method, title in METHODS.items():
        row = [title, f"{TABLE_2[method]:.2f}"]
        for column in columns:
            name = f"004/a9a/{method}/{column}"
            row.append(None)
            if results.has(name):
                correct[column, method] = predict(results, name, X, label)
                row[-1] = f"{100 * correct[column, method].mean():.2f}"
                if results.diverging(name) > 0.01:
                    row[-1] += " (diverging)"
                curves[method, column] = learning_curve(results, name, test, train)
        rows.append(row)
    page.verdict(*a9a_claims(correct, columns))
    page.table(["method", "paper", *["h = {}, D = {}".format(*c.split("/")) for c in columns]], rows)
    error = 100 * np.sqrt(0.85 * 0.15 / label.size)
    page.say(f"""Predictions average the probability over the draws after burn-in. The paper
        chose its step sizes and does not print them; an iteration is taken to be 50 inner
        steps, its thinning interval, with minibatches of 10. One standard error of an accuracy
        near 85 % on these {label.size} cases is {error:.2f} %; the best and the worst of the
        paper's methods differ by {(max(TABLE_2.values()) - min(TABLE_2.values())) / error:.1f}
        of them. What sets the methods apart is the scatter of single draws, below. Diverging:
        more than one iteration in 100 was.""")
    draw_curves(page, curves, columns)


def predict(results, name, X, label):
    """Whether each case is right by the probability averaged over every ninth draw after burn-in."""
    beta = results.draws(name, "beta")[0, ::9]
    total = sum(probabilities(part, X).sum(axis=1) for part in np.array_split(beta, 10) if len(part))
    return (total / len(beta) > 0.5) == label


def a9a_claims(correct, columns):
    """correct: by column and method, of each case. The same cases: what tells is how many differ."""
    order = {
        "h = {}, D = {}".format(*column.split("/")): of_runs(
            correct[column, "msgnht-s"].astype(float) - correct[column, "sghmc-e"]
        )
        for column in columns
        if (column, "msgnht-s") in correct and (column, "sghmc-e") in correct
    }
    best = {}
    for (_, method), right in correct.items():
        share = of_share(float(right.mean()), right.size)
        if method not in best or best[method].value < share.value:
            best[method] = share
    return (
        Claim("mSGNHT-S is more accurate than SGHMC-E", {name: below(Estimate(0), d) for name, d in order.items()}),
        Claim(
            "At its best setting as accurate as in the paper",
            {METHODS[m]: abs(below(Estimate(TABLE_2[m] / 100), share)) for m, share in best.items()},
            equal=True,
        ),
    )


def learning_curve(results, name, test, train):
    """Iterations, and of their single draws the test error and the mean log likelihood."""
    beta = np.concatenate([results.draws(name, "beta", group)[0] for group in ("warmup_posterior", "posterior")])
    at = np.unique(np.geomspace(1, len(beta), 40).astype(int)) - 1
    error = [100 - accuracy(p, test[1]) for p in probabilities(beta[at], test[0]).T]
    sign = np.where(train[1], 1, -1)[:, None]
    logits = train[0] @ beta[at].T.astype(np.float32)
    return at + 1, error, -np.logaddexp(0, -sign * logits).mean(axis=0)


def draw_curves(page, curves, columns):
    page.heading("Fig. 6: learning curves on a9a", 3)
    figure, axes = panels(2, len(columns), sharey="row", sharex=True)
    for column, (top, bottom) in zip(columns, axes.T):
        for method, title in METHODS.items():
            if (method, column) in curves:
                at, error, log_likelihood = curves[method, column]
                top.semilogx(at, error, lw=0.9, label=title)
                bottom.semilogx(at, log_likelihood, lw=0.9)
        top.set(title="h = {}, D = {}".format(*column.split("/")), ylim=(14, 30))
        bottom.set(xlabel="iteration", ylim=(-0.7, -0.3))
    axes[0, 0].set_ylabel("test error, %")
    axes[1, 0].set_ylabel("training log likelihood")
    axes[0, 0].legend()
    page.figure(
        "004_fig6",
        figure,
        """Single draws along the chain, burn-in included: test error, and mean log likelihood of
        the training set.""",
    )
    page.say("""The picture is the paper's: with enough diffusion and a small step all four
        agree; with little diffusion, or larger steps, SGHMC, which ignores the noise of its
        minibatches, scatters most, mSGNHT-E begins to at the largest step, and mSGNHT-S stays.""")
