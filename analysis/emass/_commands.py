"""The program's commands as functions: run, summary, merge, topics, report, evidence, loo."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _program
from ._errors import ConvergenceWarning, Error, Stopped, first_line, path_of, warn
from .data import as_file, as_text, from_yaml

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Draws", "draws_of", "evidence", "has_group", "loo", "merge", "read", "report", "run", "summary", "tell_verdict", "topics"]

OF_PYTHON = ("pymc", "jax", "function")  # names of models whose functions are Python's

Draws = Any  # an InferenceData of ArviZ 0.x, or a DataTree of 1.x
Config = Mapping[str, Any] | str | os.PathLike[str]


def run(
    config: Config,
    ranks: int | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = True,
) -> Draws:
    """Samples, and returns the draws.

    config: the file of a config, or its content. Paths of data are relative to its folder, or to
    the current one. ranks: the number of processes; None: 4, or one for each chain if there are
    fewer. settings: {"run.draws": 2000} replaces options of the config. output: the file to keep,
    instead of the config's; if neither names one, no file is kept. progress: False hides
    the progress and the verdict; a run that is not converged is then a ConvergenceWarning. An
    interrupt, SIGTERM or SIGUSR1 stops the run with a checkpoint. Raises Error with the message of
    emass, or Stopped; resume=True continues its file.
    """
    if not isinstance(config, Mapping):
        path_of(config, "run: config", "a mapping, or the path of a file")
    if settings is not None and not isinstance(settings, Mapping):
        raise Error(f"run: settings: found {type(settings).__name__}, expected a mapping")
    content = _content_of(config)
    named = None if output else _output_of(content, settings or {})
    kept_as = output or named
    if resume and not kept_as:
        raise Error("run: resume=True: found no output, expected the file to go on with")
    with contextlib.ExitStack() as stack:
        file = Path(kept_as or stack.enter_context(tempfile.TemporaryDirectory()) + "/draws.h5")
        words = ["run", str(stack.enter_context(as_file(config))), "--ranks", str(_ranks_for(content, settings or {}) if ranks is None else ranks)]
        words += ["--remove-config"] * isinstance(config, Mapping)  # the file is one of ours
        words += [] if named else ["--output", str(file)]
        words += ["--overwrite"] * overwrite + ["--resume"] * resume
        for key, value in (settings or {}).items():
            words += ["--set", f"{key}={as_text(value)}"]
        try:
            _program.watch([*words, "--progress", "log"], progress)
        except Stopped as stopped:
            kept = ", with a checkpoint: go on with resume=True"
            lost = "; nothing is kept: name an output, from which resume=True goes on"
            said = str(stopped).replace(", with a checkpoint: go on with emass.resume", kept if kept_as else lost)
            raise Stopped(said, stopped.status) from None
        data = read(file)
        tell_verdict(data, progress)
        return data


def tell_verdict(draws: Draws, progress: bool) -> None:
    """Prints the verdict if progress is shown. Otherwise warns if the run is not converged."""
    verdict = str(draws.attrs.get("verdict", ""))
    if progress and verdict:
        print(verdict, file=sys.stderr)
    elif verdict.startswith("not converged"):
        warn(verdict, ConvergenceWarning)


def summary(
    data: Draws | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    var: str | Sequence[str] = (),
    *,
    group: str = "posterior",
    percentiles: Sequence[float] = (5, 50, 95),
    common: bool = False,
) -> pd.DataFrame:
    """A table with a row for each number: mean, its Monte Carlo standard error, sd, percentiles,
    ESS and R-hat.

    data: draws, or a file of any program in ArviZ's schema, or several files of one model, whose
    chains are numbered consecutively. var: names or patterns. common: if files have different
    numbers of draws, use only the first draws that all have.
    """
    import pandas as pd

    words = ["--csv", "--group", group, "--percentiles", ",".join(f"{p:g}" for p in percentiles)]
    words += ["--common"] if common else []
    for name in [var] if isinstance(var, str) else var:
        words += ["--var", name]
    with contextlib.ExitStack() as stack:
        files = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
        paths = [stack.enter_context(_on_disk(file)) for file in files]
        return pd.read_csv(io.StringIO(_program.ask("summary", *paths, *words)), index_col="name")


def merge(
    output: str | os.PathLike[str],
    files: Sequence[str | os.PathLike[str]],
    *,
    common: bool = False,
    overwrite: bool = False,
) -> Draws:
    """Merges files of one model, such as those of a job array, with chains numbered consecutively,
    and returns the draws. common: only the first draws that all files have."""
    words = (["--common"] if common else []) + (["--overwrite"] if overwrite else [])
    _program.ask("merge", os.fspath(output), *map(os.fspath, files), *words)
    return read(Path(output))


def topics(file: str | os.PathLike[str], words: int = 10) -> pd.DataFrame:
    """The topics of a run of model lda, the largest first: share, coherence (npmi; 0 or less for
    junk topics), the number of chains that found it, and its most probable words."""
    import pandas as pd

    rows = []
    for line in _program.ask("topics", os.fspath(file), "--words", str(words)).splitlines():
        if match := re.match(r" *(\d+) +(\S+) +(\S+) +(\d+)/(\d+) +(.*)", line):
            topic, share, npmi, found, _, text = match.groups()
            coherence = float(npmi) if npmi != "-" else float("nan")
            rows.append((int(topic), float(share), coherence, int(found), text.removeprefix("(junk) ").split()))
    return pd.DataFrame(rows, columns=["topic", "share", "npmi", "chains", "words"]).set_index("topic")


def report(
    data: Draws | str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> Path:
    """Writes the page of a run, FILE.html unless `output` names another; returns its path."""
    if output is None and not isinstance(data, (str, os.PathLike)):
        raise Error("report: found draws, which have no file, and no output: expected the path of the page")
    with _on_disk(data) as file:
        return Path(_program.ask("report", file, *(["--output", os.fspath(output)] if output else [])).strip())


def loo(draws: Draws | str | os.PathLike[str], var: str | None = None, *, pointwise: bool | None = None) -> Any:
    """Leave-one-out cross-validation by Pareto smoothed importance sampling: ArviZ's ELPDData.

    draws: with the group log_likelihood, whose variables are (chain, draw, observation...); var:
    the variable of the group, if it has several; pointwise: also return a number for each
    observation."""
    import arviz

    data = draws_of(draws, "loo")
    if not has_group(data, "log_likelihood"):
        raise Error("loo: found no group log_likelihood in the draws, expected a model made with log_likelihood=True")
    names = list(data["log_likelihood"].data_vars)
    if var not in names and (var is not None or len(names) > 1):
        raise Error(f"loo: var: found {var!r}, expected one of {', '.join(names)}")
    return arviz.loo(data, var_name=var, pointwise=pointwise)


def evidence(
    draws: Draws | str | os.PathLike[str] | Mapping[str, Draws | str | os.PathLike[str]], *, same_data: bool = False
) -> pd.DataFrame:
    """The log evidence of tempered runs, the best model first, a row for each: log_evidence and
    its std_error, log_bayes_factor relative to the best one and its error, log_bayes_factor_error, and
    the probability if all models have equal prior probabilities.

    draws: of one run, or {"name": draws} of several, made by sample(temper=True). Models are refused
    if their data differ, or are inside functions of Python, unless same_data is True."""
    import pandas as pd

    if isinstance(draws, (list, tuple)):
        raise Error(f"evidence: found {type(draws).__name__}, expected draws, the path of a file, or a mapping of names to these")
    runs = draws if isinstance(draws, Mapping) and not hasattr(draws, "attrs") else {"model": draws}
    rows, hashes, models = [], set(), {}
    if not runs:
        raise Error("evidence: found no runs, expected draws of one, or of several by their names")
    for name, one in runs.items():
        attrs = draws_of(one, "evidence").attrs
        if "log_evidence" not in attrs:
            raise Error(f"evidence: {name}: found no log evidence, expected draws of sample(temper=True)")
        hashes.add(attrs.get("data_hash"))
        models[name] = str(attrs.get("model"))
        rows.append((name, float(attrs["log_evidence"]), float(attrs["log_evidence_error"])))
    if len(hashes) > 1 and not same_data:
        raise Error(_different_data(models))
    table = pd.DataFrame(rows, columns=["name", "log_evidence", "std_error"]).set_index("name")
    table = table.sort_values("log_evidence", ascending=False, kind="stable")
    best = table.iloc[0]
    table["log_bayes_factor"] = table.log_evidence - best.log_evidence
    table["log_bayes_factor_error"] = [
        0.0 if i == 0 else math.hypot(error, best.std_error) for i, error in enumerate(table.std_error)
    ]
    weight = table.log_bayes_factor.map(math.exp)
    table["probability"] = weight / weight.sum()
    return table


def _different_data(models: Mapping[str, str]) -> str:
    """The error for models, by name, whose data are not known to be the same."""
    of_python = ", ".join(name for name, model in models.items() if model in OF_PYTHON)
    known = f"The data of {', '.join(models)} differ."
    if of_python:
        known = f"The data of a model of Python ({of_python}) are inside its functions, where emass does not see them."
    return (
        f"evidence: {known} Evidence can be compared only of models of the same data. "
        "If the observations are the same, give same_data=True."
    )


# ---------------------------------------------------------------- files


def has_group(data: Draws, group: str) -> bool:
    """Whether draws have a group: ArviZ 0.x has attributes, 1.x children."""
    return group in data.children if hasattr(data, "children") else hasattr(data, group)


def _content_of(config: Config) -> Mapping[str, Any]:
    """The content of a config or of its file; empty if it is no config, because emass then names the mistake."""
    import yaml

    try:
        content = config if isinstance(config, Mapping) else from_yaml(Path(config).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return content if isinstance(content, Mapping) else {}


def _option(content: Mapping[str, Any], settings: Mapping[str, Any], key: str) -> Any:
    """The value of a key such as run.chains in settings or, if they lack it, in the config."""
    section, name = key.split(".")
    inside = content.get(section)
    return settings.get(key, content.get(key, inside.get(name) if isinstance(inside, Mapping) else None))


def _output_of(content: Mapping[str, Any], settings: Mapping[str, Any]) -> str | None:
    """The output file that settings name or, if they name none, the config."""
    file = _option(content, settings, "output.file")
    return os.path.expandvars(file) if isinstance(file, (str, os.PathLike)) else None


def _ranks_for(content: Mapping[str, Any], settings: Mapping[str, Any]) -> int:
    """The number of ranks: about 4, in whole groups that compute a chain together, at most one group for each chain."""

    def number(key: str, default: int) -> int:
        try:
            return max(1, int(_option(content, settings, key)))
        except (TypeError, ValueError, OverflowError):  # absent, or wrong: emass says so
            return default

    group = number("run.shards", 1) * number("run.ranks_per_chain", 1)
    if group > max(4, os.cpu_count() or 1):
        return 4  # which emass refuses: so many are started only when they are asked for
    return group * min(number("run.chains", 4), max(1, 4 // group))


@contextlib.contextmanager
def _on_disk(data: Draws | str | os.PathLike[str]) -> Iterator[str]:
    if isinstance(data, (str, os.PathLike)):
        yield os.fspath(data)
        return
    draws_of(data, "draws")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "draws.nc")
        data.to_netcdf(file)
        try:
            yield file
        except Error as error:
            error.args = (str(error).replace(file, "draws"),)
            raise


def read(file: str | os.PathLike[str]) -> Draws:
    """The draws of a file, in memory: an object of ArviZ, whichever version is installed."""
    import arviz

    path = path_of(file, "read")
    if not os.path.exists(path):
        raise Error(f"{path}: could not open: no such file")
    try:
        data = arviz.from_netcdf(file)
        loaded = data.load()
    except Exception as error:  # whatever reads HDF5 for ArviZ raises
        raise Error(f"{path}: could not be read: expected an HDF5 file of draws ({first_line(error)})") from error
    found = data if loaded is None else loaded
    groups = list(found.children) if hasattr(found, "children") else list(found.groups())
    if not _GROUPS.intersection(one.strip("/").removeprefix("warmup_") for one in groups):
        raise Error(f"{path}: found {_what_it_has(path, groups)}, expected a file of draws, with a group such as posterior")
    return found


_GROUPS = frozenset(
    "posterior sample_stats log_likelihood log_prior posterior_predictive predictions prior prior_predictive observed_data "
    "constant_data predictions_constant_data sample_stats_prior unconstrained_posterior".split()
)


def _what_it_has(path: str, groups: Sequence[str]) -> str:
    """Describes the groups of a file without draws, for an error."""
    if path.endswith((".checkpoint", ".checkpoint.previous")):
        return "the checkpoint of a run (emass.resume goes on with the file beside it)"
    return f"the group {groups[0]}" if groups else "no groups"


def draws_of(given: Draws | str | os.PathLike[str], who: str) -> Draws:
    """Returns draws that were given, or reads them from the file that was given."""
    if isinstance(given, (str, os.PathLike)):
        return read(given)
    if not hasattr(given, "attrs") or not hasattr(given, "to_netcdf"):
        raise Error(f"{who}: found {type(given).__name__}, expected draws, or the path of a file")
    return given
