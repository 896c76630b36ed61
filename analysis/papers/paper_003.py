"""Paper 003: a Python package of SGHMC; densities, a linear regression, and times."""

import h5py
import numpy as np

from papers import plain_numpy
from papers.data import CORRELATED, THETA
from papers.measure import Density, ess, two_peaks
from papers.page import panels
from papers.verdict import Claim, Estimate, apart, below, of_mean, of_runs

# Table 1 of the paper, seconds: plain Python, and the fastest of its variants.
PAPER_SECONDS = {"with-gradient": (7.35, 0.908), "with-data": (12.8, 11.5)}

DENSITIES = [
    ("hmc", "HMC"),
    ("hmc-without-mh", "HMC without MH"),
    ("naive-with-mh", "naive SGHMC"),
    ("naive-without-mh", "naive SGHMC without MH"),
    ("sghmc", "SGHMC, Euler"),
    ("sghmc-aboba", "SGHMC, aboba"),
]


DYNAMICS = [
    ("hmc", "exact gradient"),
    ("naive", "noisy gradient"),
    ("naive-resampled", "noisy, momenta resampled"),
    ("sghmc", "SGHMC"),
]
DYNAMICS_LABELS = dict(DYNAMICS)
CORRELATED_METHODS = [("hmc", "HMC"), ("naive", "naive SGHMC"), ("sghmc", "SGHMC")]


# ---- the page ----


def write(page, results):
    page.heading("003: stochastic gradient HMC in Python")
    write_dynamics(page, results)
    write_densities(page, results)
    write_correlated(page, results)
    write_regression(page, results)
    write_times(page, results)
    write_airbnb(page, results)


def write_dynamics(page, results):
    page.heading("Fig. 2: trajectories of noisy dynamics, U = theta^2 / 2", 3)
    shown = [(name, label) for name, label in DYNAMICS if results.has(f"003/dynamics/{name}")]
    if not shown:
        return page.leave_out()
    figure, axes = panels(1, 4, 2.4, 2.4)
    rows, last = [], {}
    for ax, (name, label) in zip(axes.flat, shown):
        theta = results.draws(f"003/dynamics/{name}", "theta").ravel()
        if name == "naive-resampled":
            ax.plot(theta[:300], ".", ms=2)
            ax.set(xlabel="resampling", ylabel="theta")
        else:
            ax.plot(theta[1:1000], np.diff(theta[:1000]) / 0.1, lw=0.4)
            ax.set(xlabel="theta", ylabel="r")
        ax.set_title(label)
        tenths = np.array_split(theta**2, 10)
        rows.append([label, tenths[0].mean(), tenths[4].mean(), tenths[9].mean()])
        last[name] = of_mean(tenths[9])
    page.figure(
        "003_fig2",
        figure,
        """1000 steps of 0.1; momenta are not in our files, r is the difference of positions. Where
        momenta are resampled, the positions at the end of each 50 steps.""",
    )
    one = Estimate(1)
    page.verdict(
        Claim("In the last tenth SGHMC is at its temperature, 1", worst_case(last, "sghmc", one), equal=True),
        Claim("and hot are", {DYNAMICS_LABELS[n]: below(one, last[n]) for n in last if n.startswith("naive")}),
    )
    page.table(["mean of theta^2", "first tenth", "fifth", "last"], rows)
    page.say("""As in the paper: without friction the noise of the gradient heats the dynamics
        without end; resampling of momenta and friction both hold it. Only friction holds it at
        the right temperature, where the mean of theta^2 is 1, give or take the 0.2 or so of
        chance that 1000 steps leave. Without noise or friction the energy of the start stays.""")


def worst_case(estimates, name, truth):
    """The case of a claim of equality, without a name; none if it was not run."""
    return {"": apart((estimates[name], truth))} if name in estimates else {}


def write_correlated(page, results):
    page.heading("Fig. 4: the first 50 samples of a bivariate normal, correlation 0.9", 3)
    names = {name: f"003/correlated/{name}" for name, _ in CORRELATED_METHODS}
    if not results.has(*names.values()):
        return page.leave_out()
    figure, axes = panels(1, 3, 2.6, 2.6, sharex=True, sharey=True)
    precision = np.linalg.inv(CORRELATED)
    circle = np.exp(2j * np.pi * np.linspace(0, 1, 200))
    ellipse = np.linalg.cholesky(CORRELATED) @ np.array([circle.real, circle.imag])
    rows, means = [], {}
    for ax, (name, label) in zip(axes.flat, CORRELATED_METHODS):
        theta = results.draws(names[name], "theta")
        distance = np.einsum("cdi,ij,cdj->cd", theta, precision, theta)
        for radius in (1, 2.15):  # 39 % and 90 % of the mass
            ax.plot(*(radius * ellipse), color="black", lw=0.6)
        ax.plot(*theta[0, :50].T, "o", ms=2.5)
        ax.set_title(label)
        error = distance.std() / np.sqrt(ess(distance))
        rows.append([label, distance[0, :50].mean(), distance.mean(), error])
        means[label] = of_mean(distance)
    page.figure("003_fig4", figure, "The first 50 draws; ellipses hold 39 and 90 % of the normal.")
    two, naive = Estimate(2), means.pop("naive SGHMC")
    page.verdict(
        Claim("It is 2", {label: apart((mean, two)) for label, mean in means.items()}, equal=True),
        Claim("and above that of naive SGHMC", {"": below(two, naive)}),
    )
    page.table(["mean of theta' inv(Sigma) theta", "first 50", "all 10000", "MCSE"], rows)
    page.say("""It is 2 where the draws are right. As in the paper naive SGHMC leaves more points
        where the probability is low. The paper does not print its noise or its steps: here noise
        of variance 1, and 50 steps of 0.1 to a draw.""")


def write_densities(page, results):
    page.heading("Fig. 3: a density with two peaks", 3)
    shown = [(name, label) for name, label in DENSITIES if results.has(f"003/density/{name}")]
    if not shown:
        return page.leave_out()
    density = Density(two_peaks, -3, 3, 60)
    figure, axes = panels(2, 3)
    rows, squares = [], {}
    for ax, (name, label) in zip(axes.flat, shown):
        draws = results.draws(f"003/density/{name}", "theta")
        rows.append([label, density.kl(draws), float(np.mean(draws**2)), ess(draws)])
        squares[label] = of_mean(draws**2)
        ax.stairs(density.histogram(draws) / np.diff(density.edges), density.edges, color="C0")
        ax.plot(density.fine, density.value, color="black", lw=0.8)
        ax.set_title(label)
    true_square = float(np.trapezoid(density.fine**2 * density.value, density.fine))
    rows.append(["truth", 0.0, true_square, None])
    page.figure("003_fig3", figure, "Histograms of 10000 draws, the density in black.")
    hot = squares.pop("naive SGHMC without MH", None)
    page.verdict(
        Claim(
            "The mean of theta^2 is the true one",
            {label: apart((square, Estimate(true_square))) for label, square in squares.items()},
            equal=True,
        ),
        Claim("Too large without MH", {"naive SGHMC": below(Estimate(true_square), hot)} if hot else {}),
    )
    page.table(["sampler", "KL", "mean of theta^2", "ESS"], rows)
    page.say("""The paper shows curves without numbers: all but naive SGHMC without
        Metropolis-Hastings lie on the density, and so do ours: the KL of the others is what
        histograms of 10000 correlated draws leave. Gradient noise has variance 4, and its
        estimate is left out of what SGHMC injects, as in the paper; HMC without
        Metropolis-Hastings is `sghmc_naive` with exact gradients.""")


def write_regression(page, results):
    name = "003/time/with-data"
    page.heading("Fig. 5: Bayesian linear regression", 3)
    if not results.has(name):
        return page.leave_out()
    with h5py.File(results.folder / "linear.h5") as file:
        X, y = np.split(file["table"][:], [5], axis=1)
    covariance = np.linalg.inv(X.T @ X + np.eye(5))
    mean = covariance @ (X.T @ y[:, 0])
    draws = results.draws(name, "beta")
    draws = draws[:, draws.shape[1] // 10 :]
    estimates = [of_mean(draws[..., i]) for i in range(5)]
    squares = [of_mean((draws[..., i] - mean[i]) ** 2) for i in range(5)]
    draws = draws.reshape(-1, 5)
    rows = [
        [f"theta[{i}]", THETA[i], mean[i], draws[:, i].mean(), draws[:, i].std() / np.sqrt(covariance[i, i])]
        for i in range(5)
    ]
    figure, axes = panels(1, 5, 2, 2)
    for i, ax in enumerate(axes.flat):
        sd = np.sqrt(covariance[i, i])
        grid = mean[i] + sd * np.linspace(-6, 6, 200)
        ax.hist(draws[:, i], grid[::4], density=True, color="C0", histtype="step")
        ax.plot(grid, np.exp(-(((grid - mean[i]) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi)), "k")
        ax.axvline(THETA[i], color="C3", lw=0.8)
        ax.set_title(f"theta[{i}]")
    page.figure("003_fig5", figure, "Draws of the coefficients; exact posteriors in black, the truth in red.")
    too_wide = [below(Estimate(covariance[i, i]), squares[i]) for i in range(5)]
    page.verdict(
        Claim("The means are exact", {"": apart(*((e, Estimate(m)) for e, m in zip(estimates, mean)))}, equal=True),
        Claim("All five coefficients are drawn too widely", {"": min(too_wide)}),
    )
    page.table(["", "truth of the data", "exact mean", "ours", "sd / exact sd"], rows)
    heat = np.sqrt(1 + 1e-4 / 2 * len(y) ** 2 / 1000 / 13)  # V = N^2 / n I, as features and residuals are N(0, 1)
    page.say(f"""As in the paper the means fit. The spread does not: the paper's V-hat is 0,
        which leaves the minibatch noise V uncorrected and the draws too wide, by sqrt(1 + eps V
        / 2 C) = {heat:.2f} where theory is right. The paper reads small variances as a success;
        the exact ones are smaller.""")


def write_times(page, results):
    page.heading("Table 1: seconds for 500000 inner steps", 3)
    tasks = [task for task in PAPER_SECONDS if results.has(f"003/time/{task}")]
    if not tasks:
        return page.leave_out()
    numpy = plain_numpy.seconds(results.folder)
    rows, ratios = [], []
    for task in tasks:
        base, best = PAPER_SECONDS[task]
        ours = results.seconds(f"003/time/{task}")
        steps = 50 * results.iterations(f"003/time/{task}")
        plain = numpy[f"003/{task}"] * steps if f"003/{task}" in numpy else None
        ratios += [plain / ours] if plain else []
        rows.append([task.replace("-", " "), base, best, plain, ours, *ratios[-1:], best / ours])
    if ratios:
        page.verdict(f"emass takes 1 / {min(ratios):.0f} to 1 / {max(ratios):.0f} of plain numpy's time.")
    page.table(
        [
            "task",
            "paper, plain",
            "paper, fastest",
            "numpy here",
            "emass here",
            "numpy / emass",
            "paper's fastest / emass",
        ],
        rows,
    )
    page.say("""One chain on one core. The paper's times are of its own machine; the
        comparison that means something is with plain numpy, measured in turn with ours, from a
        tenth of the steps; of each the smallest of three. With data, both draw 1000 of 10000 observations afresh in every step and
        gather their rows; the paper's profile shows its random choice called once, for 2 ms in
        all, so it did not.""")


def write_airbnb(page, results):
    page.heading("Section 4.2.2: price classes of Airbnb listings in Buenos Aires", 3)
    methods = {m: [f"003/airbnb/{m}/{c}" for c in range(1, 5)] for m in ("sghmc", "hmc", "naive")}
    methods = {method: names for method, names in methods.items() if results.has(*names)}
    if not methods:
        return page.leave_out()
    with h5py.File(results.folder / "airbnb.h5") as file:
        X, label = file["test/X"][:], file["test/class"][:]
        tables = [file[f"class{c}"][:] for c in range(1, 5)]
    least_squares = [np.linalg.lstsq(with_one(t[:, :-1]), t[:, -1])[0] for t in tables]
    rows = [["least squares", f"{percent_right(X, least_squares, label):.1f}", None]]
    right = {}
    for method, names in methods.items():
        draws = [results.draws(name, "beta")[0] for name in names]
        single = [percent_right(X, [d[i] for d in draws], label) for i in range(0, len(draws[0]), 100)]
        right[method] = is_right(X, [d.mean(axis=0) for d in draws], label)
        mean = 100 * right[method].mean()
        rows.append([method, f"{mean:.1f}", f"{np.mean(single):.1f}"])
    page.verdict(
        Claim(
            "SGHMC is more accurate, by the mean",
            {
                f"than {other}": below(Estimate(0), of_runs(right["sghmc"].astype(float) - right[other]))
                for other in ("hmc", "naive")
                if "sghmc" in right and other in right
            },
        )
    )
    page.table(["", "accuracy of the mean, %", "of single draws, %"], rows)
    page.say("""The paper shows accuracies against the number of steps in a plot: SGHMC
        highest and level, HMC and naive SGHMC falling, as if they overfitted. Here the means
        agree: the posterior is the same whichever sampler draws it, and so is the accuracy that
        goes with it, that of least squares; only the noise of minibatches tells single draws
        apart. A correct HMC cannot overfit more than another sampler of its posterior. The
        columns are ours, as the paper does not list its own: amounts by their logarithm, dates
        in days, 0 and 1 for words.""")


def with_one(X):
    return np.column_stack([np.ones(len(X)), X])


def is_right(X, coefficients, label):
    """Of each listing, whether its class has the highest score."""
    scores = with_one(X) @ np.array(coefficients).T
    return scores.argmax(axis=1) + 1 == label


def percent_right(X, coefficients, label):
    return 100 * np.mean(is_right(X, coefficients, label))
