"""Bayesian sampling by emass: MPI-parallel chains that learn their mass matrix together.

    import emass
    model = emass.Model.linear("y ~ x", frame)       # also from_stan, from_pymc, from_jax, ...
    draws = model.sample(chains=8, ranks=4)          # ArviZ's object
    emass.summary(draws)

The program and its library are found by the environment's EMASS and EMASS_LIBRARY, on the PATH, or
where `make` leaves them.
"""

from ._commands import evidence, loo, merge, read, report, run, summary, topics
from ._errors import ConvergenceWarning, Error, Stopped
from ._program import program
from .model import Model, resume
from .plots import (
    plot_energy,
    plot_ess,
    plot_forest,
    plot_khat,
    plot_mass,
    plot_pair,
    plot_rank,
    plot_steps,
    plot_tempering,
    plot_trace,
)
from .topic_model import TopicModel, read_topics, write_corpus

__all__ = [
    "ConvergenceWarning",
    "Error",
    "Model",
    "Stopped",
    "TopicModel",
    "evidence",
    "loo",
    "merge",
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
    "program",
    "read",
    "read_topics",
    "report",
    "resume",
    "run",
    "summary",
    "topics",
    "write_corpus",
]
__version__ = "0.1.0"
