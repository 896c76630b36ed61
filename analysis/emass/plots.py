"""Figures of draws, those of `emass report`, by ArviZ 0.x or 1.x, whichever is installed.

Every function takes draws or the path of a file. `var` names variables ("theta"), elements
("theta[2]") or patterns ("theta*"); without it the figure is of the parameters that mix worst.
Other options go to ArviZ's function of that name, whose result is returned: axes of 0.x, a
PlotCollection of 1.x. Those of the sampler (plot_mass, plot_steps, plot_tempering) are drawn by
matplotlib, and take `axes` to draw on.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._commands import Draws, draws_of, has_group
from ._commands import loo as leave_one_out
from ._errors import Error, needs

__all__ = [
    "plot_energy",
    "plot_ess",
    "plot_forest",
    "plot_khat",
    "plot_mass",
    "plot_pair",
    "plot_rank",
    "plot_steps",
    "plot_tempering",
    "plot_trace",
]

Source = Draws | str | os.PathLike[str]
Names = str | Sequence[str] | None


def elements(posterior: Any, patterns: Sequence[str] = ()) -> dict[str, Any]:
    """The scalars of a group by label, each an array of (chain, draw); with patterns those they match."""
    found = {}
    for name, array in posterior.data_vars.items():
        axes = [one for one in array.dims if one not in ("chain", "draw")]
        array = array.transpose("chain", "draw", *axes)
        for index in np.ndindex(*(array.sizes[one] for one in axes)):
            parts = [str(array[one].values[at]) for one, at in zip(axes, index, strict=True)]
            label = f"{name}[{', '.join(parts)}]" if parts else name
            if not patterns or any(one in (name, label) or fnmatch.fnmatch(label, one) for one in patterns):
                found[label] = array.values[(..., *index)]
    return found


def worst_first(draws: dict[str, Any]) -> list[str]:
    """The labels by decreasing R-hat. Constants, which have no R-hat, come last."""
    import arviz

    r_hat = {label: float(arviz.rhat(values)) for label, values in draws.items()}
    return sorted(draws, key=lambda label: np.nan_to_num(-r_hat[label], nan=np.inf))


def _data(draws: Source, group: str, name: str) -> Any:
    data = draws_of(draws, "plot")
    if not has_group(data, group) or name not in data[group].data_vars:
        raise Error(f"plot: found no {group}/{name} in the draws")
    return data


def _with_posterior(draws: Source, figure: str) -> Any:
    data = draws_of(draws, figure)
    if not has_group(data, "posterior"):
        raise Error(f"{figure}: found no group posterior, expected draws of a run")
    return data


def _is_old() -> bool:
    """Whether ArviZ is 0.x, whose draws are an InferenceData; from 1.0 on they are a DataTree."""
    import arviz

    return int(arviz.__version__.split(".")[0]) < 1


def _draw(figure: str, draws: Source, var: Names, most: int | None, **options: Any) -> Any:
    """ArviZ's figure of the chosen elements, each a variable of its own under its whole name."""
    import arviz
    import xarray

    data = _with_posterior(draws, figure)
    found = elements(data["posterior"], [var] if isinstance(var, str) else list(var or ()))
    if not found:
        raise Error(f"{figure}: nothing in the posterior is called {var}")
    shown = list(found) if var or most is None else worst_first(found)[:most]
    chosen = xarray.Dataset({label: (("chain", "draw"), found[label]) for label in shown})
    groups = {"posterior": chosen.assign_coords(chain=data["posterior"].chain, draw=data["posterior"].draw)}
    if has_group(data, "sample_stats"):
        stats = data["sample_stats"]
        groups["sample_stats"] = stats.to_dataset() if hasattr(stats, "to_dataset") else stats
    if _is_old():
        return getattr(arviz, figure)(arviz.InferenceData(**groups), **options)
    return getattr(arviz, figure)(xarray.DataTree.from_dict(groups), **options)


def plot_trace(draws: Source, var: Names = None, **options: Any) -> Any:
    """The draws of each chain, in their order; when all is well, chains look alike."""
    return _draw("plot_trace", draws, var, 6, **options)


def plot_rank(draws: Source, var: Names = None, **options: Any) -> Any:
    """How the draws of each chain are spread over the ranks of all; when all is well, evenly."""
    return _draw("plot_rank", draws, var, 6, **options)


def plot_ess(draws: Source, var: Names = None, **options: Any) -> Any:
    """Effective draws for small intervals of each parameter (kind="local"), or by another `kind` of ArviZ."""
    return _draw("plot_ess", draws, var, 6, **options)


def plot_forest(draws: Source, var: Names = None, **options: Any) -> Any:
    """Intervals of the parameters, of all chains together; without var those of the first 40."""
    if var is None:
        posterior = _with_posterior(draws, "plot_forest")["posterior"]
        var = list(elements(posterior))[:40]
    return _draw("plot_forest", draws, var, None, **{"combined": True, **options})


def plot_pair(draws: Source, var: Names = None, **options: Any) -> Any:
    """Draws of two parameters at a time, divergent ones marked, and on the diagonal of one."""
    kind = {"divergences": True, "marginals": True} if _is_old() else {"visuals": {"divergence": True}}
    return _draw("plot_pair", draws, var, 4, **{**kind, **options})


def plot_energy(draws: Source, **options: Any) -> Any:
    """Energies of the draws, and their changes; a narrow second curve means slow tails (E-BFMI)."""
    import arviz

    return arviz.plot_energy(_data(draws, "sample_stats", "energy"), **options)


def plot_khat(draws: Source, var: str | None = None, **options: Any) -> Any:
    """Pareto k of each observation, of draws with log likelihoods (see emass.loo)."""
    import arviz

    return arviz.plot_khat(leave_one_out(draws, var, pointwise=True), **options)


# ---------------------------------------------------------------- the sampler


def _axes(axes: Any, n: int) -> Any:
    pyplot = needs("matplotlib.pyplot", "plot", "matplotlib")
    return pyplot.subplots(1, n, figsize=(5.5 * n, 3.2), layout="constrained", squeeze=False)[1][0] if axes is None else np.ravel(axes)


def plot_mass(draws: Source, axes: Any = None) -> Any:
    """What warmup learned of the mass matrix: the largest and smallest eigenvalue of its inverse
    after each update. When all is well, both stop changing before warmup ends."""
    mass = _data(draws, "mass_adaptation", "largest_eigenvalue")["mass_adaptation"]
    (ax,) = _axes(axes, 1)
    at = np.atleast_2d(mass["iteration"].values)
    for end, style in (("largest", "C0o-"), ("smallest", "C1o--")):
        for k, values in enumerate(np.atleast_2d(mass[f"{end}_eigenvalue"].values)):
            ax.plot(at[min(k, len(at) - 1)], values, style, ms=3, label=None if k else end)
    ax.set(title="eigenvalues of the inverse mass", xlabel="iteration of warmup", yscale="log")
    ax.legend()
    return ax


def plot_steps(draws: Source, axes: Any = None) -> Any:
    """Step size and acceptance of the draws: the mean over the chains, and their range."""
    stats = _data(draws, "sample_stats", "acceptance_rate")["sample_stats"]
    both = _axes(axes, 2)
    for ax, name in zip(both, ("step_size", "acceptance_rate"), strict=True):
        if name in stats:
            values = stats[name].transpose("chain", "draw").values
            ax.fill_between(stats.draw, values.min(0), values.max(0), alpha=0.2)
            ax.plot(stats.draw, values.mean(0), lw=1)
        ax.set(title=name.replace("_", " "), xlabel="draw")
    return both


def plot_tempering(draws: Source, axes: Any = None) -> Any:
    """For a tempered run: beta of the rungs of a ladder and the rejection rates of neighbours, and
    the log evidence of both legs for each round of warmup and for the draws."""
    found = _data(draws, "tempering", "round_log_evidence")["tempering"]
    swaps, evidence = both = _axes(axes, 2)
    beta, rejection = np.ravel(found["beta"].values), np.ravel(found["rejection"].values)
    swaps.plot(beta, "C0o-", label="beta")
    swaps.plot(np.arange(len(rejection)) + 0.5, rejection, "C1--", label="rejection")
    swaps.set(title="rungs and swaps", xlabel="rung", ylim=(0, 1.02))
    swaps.legend()
    rounds = np.reshape(found["round_log_evidence"].values, (-1, 2))
    rounds = np.vstack([rounds, np.reshape(found["log_evidence"].values, (1, 2))])
    late = rounds[len(rounds) // 2 :]
    for leg, style in ((0, "C0o-"), (1, "C1o--")):
        evidence.plot(np.arange(len(rounds)) + 1, rounds[:, leg], style, ms=3, label="AB"[leg])
    if np.isfinite(late).any():
        pad = np.ptp(late[np.isfinite(late)]) or 1.0
        evidence.set_ylim(np.nanmin(late) - pad / 10, np.nanmax(late) + pad / 10)
    evidence.set(title="log evidence by leg", xlabel="round, then the draws")
    evidence.legend()
    return both
