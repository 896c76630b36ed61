"""Runs emass, which has to be built, and opens what it wrote.

    import emass
    draws = emass.run({"model": {"name": "eight_schools"}, "run": {"chains": 8}}, ranks=4)
    emass.summary(draws)

The program is found by the environment's EMASS, on the PATH, or where `make` leaves it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

if TYPE_CHECKING:
    import arviz

__all__ = ["Error", "Stopped", "merge", "program", "report", "run", "summary", "topics"]
__version__ = "0.1.0"

Config = Mapping[str, Any] | str | os.PathLike[str]


class Error(RuntimeError):
    """What emass said; `status` is its exit status: 1 while running, 2 usage, config or data."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Stopped(Error):
    """The run stopped early with a checkpoint (status 75): go on with `resume=True`."""


def program() -> str:
    """The path of the program. Raises FileNotFoundError where there is none."""
    beside = Path(__file__).resolve().parents[2] / "build" / "release" / "emass"
    found = os.environ.get("EMASS") or shutil.which("emass") or (str(beside) if beside.exists() else None)
    if not found:
        raise FileNotFoundError("emass is not on the PATH: make install, or set EMASS to its path")
    return found


def run(
    config: Config,
    ranks: int = 4,
    *,
    output: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool = True,
) -> arviz.InferenceData:
    """Samples, and returns the draws.

    config: the file of a config, or its content; data are named from its folder, or from the
    current one. settings: {"run.draws": 2000}, in place of what it says. output: the file to keep,
    in place of the config's; where neither names one, nothing stays on the disk. An interrupt stops
    the run with a checkpoint. Raises Error with the line that emass said, or Stopped, whose file
    goes on with resume=True.
    """
    named = None if output else _output_of(config, settings or {})
    kept_as = output or named
    if resume and not kept_as:
        raise ValueError("resume: expected the output to go on with")
    with contextlib.ExitStack() as stack:
        file = Path(kept_as or stack.enter_context(tempfile.TemporaryDirectory()) + "/draws.h5")
        words = ["run", str(stack.enter_context(_as_file(config))), "--ranks", str(ranks)]
        words += [] if named else ["--output", str(file)]
        words += ["--overwrite"] * overwrite + ["--resume"] * resume
        for key, value in (settings or {}).items():
            words += ["--set", f"{key}={_text(value)}"]
        try:
            _sample(words, progress)
        except Stopped as stopped:
            kept = ", with a checkpoint: go on with resume=True"
            lost = "; nothing is kept: name an output, from which resume=True goes on"
            said = str(stopped).replace(", with a checkpoint: go on with --resume", kept if kept_as else lost)
            raise Stopped(said, stopped.status) from None
        data = _open(file)
        if progress and (verdict := data.attrs.get("verdict")):
            print(verdict, file=sys.stderr)
        return data


def summary(
    data: arviz.InferenceData | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    var: str | Sequence[str] = (),
    *,
    group: str = "posterior",
    percentiles: Sequence[float] = (5, 50, 95),
    common: bool = False,
) -> pd.DataFrame:
    """Mean, its Monte Carlo standard error, sd, percentiles, ESS and R-hat, a row for each number.

    data: draws, or a file of any program in ArviZ's schema, or several of one model, whose chains
    are then numbered through. var: names or patterns. common: of files of unequal numbers of draws
    the first, as many as all have.
    """
    words = ["--csv", "--group", group, "--percentiles", ",".join(f"{p:g}" for p in percentiles)]
    words += ["--common"] if common else []
    for name in [var] if isinstance(var, str) else var:
        words += ["--var", name]
    with contextlib.ExitStack() as stack:
        files = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
        paths = [stack.enter_context(_on_disk(file)) for file in files]
        return pd.read_csv(io.StringIO(_ask("summary", *paths, *words)), index_col="name")


def merge(
    output: str | os.PathLike[str],
    files: Sequence[str | os.PathLike[str]],
    *,
    common: bool = False,
    overwrite: bool = False,
) -> arviz.InferenceData:
    """Puts files of one model, as of the jobs of an array, into one, their chains numbered through,
    and returns its draws; common: the first ones, as many as all files have."""
    words = (["--common"] if common else []) + (["--overwrite"] if overwrite else [])
    _ask("merge", os.fspath(output), *map(os.fspath, files), *words)
    return _open(Path(output))


def topics(file: str | os.PathLike[str], words: int = 10) -> pd.DataFrame:
    """The topics of a run of model lda, the largest first: share, coherence (npmi), how many chains
    found it, and its most probable words."""
    rows = []
    for line in _ask("topics", os.fspath(file), "--words", str(words)).splitlines():
        if match := re.match(r" *(\d+) +(\S+) +(\S+) +(\d+)/(\d+) +(.*)", line):
            topic, share, npmi, found, _, text = match.groups()
            coherence = float(npmi) if npmi != "-" else float("nan")
            rows.append((int(topic), float(share), coherence, int(found), text.split()))
    return pd.DataFrame(rows, columns=["topic", "share", "npmi", "chains", "words"]).set_index("topic")


def report(
    data: arviz.InferenceData | str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> Path:
    """Writes the page of a run, FILE.html unless `output` names another; returns its path."""
    if output is None and not isinstance(data, (str, os.PathLike)):
        raise ValueError("report: expected output, as draws have no file")
    with _on_disk(data) as file:
        return Path(_ask("report", file, *(["--output", os.fspath(output)] if output else [])).strip())


# ---------------------------------------------------------------- what goes in


def _plain(value: Any) -> Any:
    """Arrays and numbers of numpy as lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a config cannot hold {value!r}")


def _output_of(config: Config, settings: Mapping[str, Any]) -> str | None:
    """The file that settings or else the config names. Of what is no config emass says what is wrong."""
    if "output.file" in settings:
        file = settings["output.file"]
    else:
        try:
            content = config if isinstance(config, Mapping) else yaml.safe_load(Path(config).read_text(encoding="utf-8"))
            file = content["output"]["file"]
        except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError):
            return None
    return os.path.expandvars(file) if isinstance(file, (str, os.PathLike)) else None


_PREFIX = ".emass-"  # of the file of a config; what is said of it is said of the config


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=_plain)


@contextlib.contextmanager
def _as_file(config: Config) -> Iterator[Path]:
    """A config as a file of YAML, of which JSON is a part; in the current folder for its paths."""
    if not isinstance(config, Mapping):
        yield Path(config)
        return
    with tempfile.NamedTemporaryFile("w", dir=os.getcwd(), prefix=_PREFIX, suffix=".yaml", encoding="utf-8") as file:
        file.write(json.dumps(config, default=_plain, ensure_ascii=False))
        file.flush()
        yield Path(file.name)


@contextlib.contextmanager
def _on_disk(data: arviz.InferenceData | str | os.PathLike[str]) -> Iterator[str]:
    if isinstance(data, (str, os.PathLike)):
        yield os.fspath(data)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "draws.nc")
        data.to_netcdf(file)
        yield file


def _open(file: Path) -> arviz.InferenceData:
    """In memory: the file may go."""
    import arviz

    data = arviz.from_netcdf(file)
    loaded = data.load()
    return data if loaded is None else loaded


# ---------------------------------------------------------------- the program


def _fail(status: int, said: str) -> None:
    said = re.sub("give --overwrite, --resume or another --output", "give overwrite=True, resume=True or another output", said)
    message = "\n".join(line.removeprefix("emass: ") for line in said.splitlines() if line.startswith("emass: "))
    message = re.sub(rf"\S*{re.escape(_PREFIX)}\w+\.yaml(:1)?: ", "config: ", message)
    raise (Stopped if status == 75 else Error)(message or said.strip() or f"emass: exit status {status}", status)


def _ask(*words: str) -> str:
    done = subprocess.run([program(), *words], capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        _fail(done.returncode, done.stderr)
    return done.stdout


def _shower() -> Callable[[str], None]:
    """Shows a line in place of the last one: in a notebook, or on a terminal."""
    with contextlib.suppress(ImportError, AttributeError):
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython().__class__.__name__ == "ZMQInteractiveShell":
            cell = display({"text/plain": ""}, raw=True, display_id=True)
            return lambda line: cell.update({"text/plain": line}, raw=True)
    if sys.stderr.isatty():
        return lambda line: print(f"\r{line:<79.79}", end="", file=sys.stderr, flush=True)
    return lambda line: print(line, file=sys.stderr, flush=True)


def _sample(words: Sequence[str], progress: bool) -> None:
    """Lines of progress are shown; an interrupt lets the run write its checkpoint."""
    show = _shower() if progress else (lambda line: None)
    said = []
    with subprocess.Popen(
        [program(), *words, "--progress", "log"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        assert process.stderr
        while True:
            try:
                for line in process.stderr:
                    if match := re.match(r"[\d-]{10} [\d:]{8} (.*)", line):
                        show(match[1])
                    else:
                        said.append(line)
                status = process.wait()
                break
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
    if progress and sys.stderr.isatty():
        print(file=sys.stderr)
    for line in said if not status else []:
        print(line, end="", file=sys.stderr)
    if status:
        _fail(status, "".join(said))
