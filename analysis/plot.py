#!/usr/bin/env python3
"""Draws one figure of a file of draws: traces, ranks, intervals, and what the mass learned.

    analysis/plot.py FILE.h5 [-o OUT.png|.pdf|.svg] [--var NAME]...

Without --var the traces and ranks are those of the parameters that mix worst. Any file in ArviZ's
InferenceData schema will do; the panels of the M-steps need emass's group `mass_adaptation`.
"""
import argparse
import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
warnings.simplefilter("ignore")  # groups beyond the schema, ArviZ's own announcements

import arviz as az  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

from emass.plots import elements, worst_first  # noqa: E402
from style import INK, SOFT, STYLE  # noqa: E402

ROWS = 6  # parameters with a trace
INTERVALS = 40  # parameters in the interval plot
POINTS = 1000  # of a chain in a trace


def plot_trace(ax, label, values, colors):
    step = -(-values.shape[1] // POINTS)
    for chain, color in zip(values, colors):
        ax.plot(np.arange(chain.size)[::step], chain[::step], lw=0.5, alpha=0.7, color=color)
    ax.set_title(f"{label}    R-hat {az.rhat(values):.3f}, bulk ESS {az.ess(values):.0f}")
    ax.margins(x=0)


def plot_ranks(ax, values, colors):
    """Of each chain, the draws in each bin of the ranks of all: level if it mixes."""
    n_chain, n_draw = values.shape
    n_bin = int(np.clip(n_draw // 25, 5, 20))
    rank = values.ravel().argsort().argsort().reshape(values.shape)
    edge = np.linspace(0, values.size, n_bin + 1)
    expected = n_draw / n_bin
    spread = 2 * np.sqrt(expected * (1 - 1 / n_bin))
    ax.axhspan(expected - spread, expected + spread, color=SOFT, alpha=0.15, lw=0)
    for chain, color in zip(rank, colors):
        ax.stairs(np.histogram(chain, edge)[0], edge, baseline=None, color=color, lw=0.9)
    ax.set(xlim=(0, values.size), yticks=[], ylim=(0, None))


def plot_intervals(ax, draws):
    for row, values in enumerate(draws.values()):
        low, lower, middle, upper, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
        ax.plot([low, high], [row, row], color=SOFT, lw=1)
        ax.plot([lower, upper], [row, row], color=INK, lw=2.5, solid_capstyle="round")
        ax.plot(middle, row, "o", color="white", mec=INK, ms=4)
    ax.set_yticks(range(len(draws)), draws)
    ax.set_ylim(len(draws) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    ax.set_title("median, 50 % and 90 % of all draws")


def plot_m_steps(ax_kappa, ax_eigen, mass):
    """One line for every mass there is: a single one where all chains share it."""
    def lines(ax, name, color):
        values = np.atleast_2d(mass[name].values)
        for at, value in zip(np.atleast_2d(mass["iteration"].values), values):
            ax.plot(at, value, color=color, marker="o", ms=3, lw=1)
        return ax.lines[-1]

    ax_count = ax_kappa.twinx()
    ax_count.spines["right"].set_visible(True)
    lines(ax_kappa, "kappa", "C0")
    lines(ax_count, "S_count", "C1")
    ax_kappa.set(title="M-steps: averaging weight and samples", xlabel="iteration", ylim=(0, None))
    ax_kappa.set_ylabel("kappa", color="C0")
    ax_count.set_ylabel("S_count", color="C1")
    ax_count.set_ylim(0, None)
    ends = [lines(ax_eigen, f"{end}_eigenvalue", color)
            for end, color in (("largest", "C3"), ("smallest", "C2"))]
    ax_eigen.set(title="inverse mass: eigenvalues", xlabel="iteration", yscale="log")
    ax_eigen.legend(ends, ["largest", "smallest"])


def figure(data, globs, title):
    draws = elements(data.posterior, globs)
    if not draws:
        sys.exit(f"plot.py: nothing in the posterior is called {' or '.join(globs)}")
    shown = (list(draws) if globs else worst_first(draws))[:ROWS]
    mass = data["mass_adaptation"] if "mass_adaptation" in data.groups() else None
    n_chain = data.posterior.sizes["chain"]
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, n_chain))

    n_row = len(shown) + (mass is not None)
    fig = plt.figure(figsize=(13, 1.5 * n_row + 1), layout="constrained")
    grid = fig.add_gridspec(n_row, 3, width_ratios=[4, 2, 3],
                            height_ratios=[1] * len(shown) + [1.4] * (mass is not None))
    for row, label in enumerate(shown):
        trace, ranks = fig.add_subplot(grid[row, 0]), fig.add_subplot(grid[row, 1])
        plot_trace(trace, label, draws[label], colors)
        plot_ranks(ranks, draws[label], colors)
        if row == 0:
            ranks.set_title("ranks of each chain")
        if row < len(shown) - 1:
            trace.set_xticklabels([])
            ranks.set_xticklabels([])
    trace.set_xlabel("draw")
    ranks.set_xlabel("rank")
    intervals = dict(list(draws.items())[:INTERVALS])
    plot_intervals(fig.add_subplot(grid[: len(shown), 2]), intervals)
    if mass is not None:
        plot_m_steps(fig.add_subplot(grid[-1, 0]), fig.add_subplot(grid[-1, 1:]), mass)
    fig.suptitle(title, x=0.01, ha="left", fontsize=11)
    return fig


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="of the kind its name ends with, .png, .pdf or .svg; default: FILE.png")
    parser.add_argument("--var", action="append", default=[], metavar="NAME",
                        help="a variable, an element such as 'theta[0]', or a pattern; repeatable")
    args = parser.parse_args()
    try:
        data = az.from_netcdf(args.file)
        posterior = data.posterior
    except (OSError, ValueError, AttributeError) as error:
        sys.exit(f"plot.py: {args.file}: not a file of draws ({error})")
    size = posterior.sizes
    title = f"{args.file.name}: {size['chain']} chains of {size['draw']} draws"
    if "verdict" in data.attrs:
        title += "\n" + data.attrs["verdict"]
    output = args.output or args.file.with_suffix(".png")
    with plt.rc_context(STYLE):
        figure(data, args.var, title).savefig(output, dpi=130)
    print(output)


if __name__ == "__main__":
    main()
