"""Writes configs, data frames and arrays as files that emass reads."""

from __future__ import annotations

import contextlib
import csv
import datetime
import fcntl
import functools
import glob
import hashlib
import io
import json
import numbers
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ._errors import Error
from ._program import CONFIG_PREFIX

__all__ = [
    "Files",
    "as_file",
    "as_json",
    "as_text",
    "from_json",
    "from_yaml",
    "is_frame",
    "level_orders",
    "one_line",
    "plain",
    "refuse_complex",
    "rows_named",
    "stan_data",
    "table",
    "temporary",
]

_FRESH = 60  # seconds in which a file may not have its lock yet


def plain(value: Any) -> Any:
    """Arrays and numbers of numpy as lists and numbers; paths as text.

    >>> import numpy as np
    >>> as_json({"N": np.int64(2), "y": np.array([1.5, 2.0])})
    '{"N": 2, "y": [1.5, 2.0]}'
    """
    if hasattr(value, "tolist"):
        made = value.tolist()
        return float(made) if type(made) is type(value) else made  # numpy leaves a longdouble as it is
    if hasattr(value, "to_list"):  # a polars Series
        return value.to_list()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    shown = repr(value)
    raise TypeError(f"found {shown if len(shown) < 80 and shown.isprintable() else type(value).__name__}, which a config cannot hold")


class Written(float):
    """A number of a config that keeps its spelling, for options of text: 1e3, not 1000.0."""

    def __new__(cls, text: str) -> Written:
        """The number with this text."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __getnewargs__(self) -> tuple[str]:
        return (self.text,)


def as_json(value: Any) -> str:
    """A config as one line of JSON, which is YAML too. Numbers keep the spelling of the config.

    >>> as_json(from_yaml("{positive: 1e3, levels: {dose: [0.50, x]}}"))
    '{"positive": 1e3, "levels": {"dose": [0.50, "x"]}}'
    """
    texts: list[str] = []

    def marked(one: Any) -> Any:
        if isinstance(one, Written):
            texts.append(one.text)
            return f"\0{len(texts) - 1}\0"
        if isinstance(one, Mapping):
            return {key: marked(inner) for key, inner in one.items()}
        return [marked(inner) for inner in one] if isinstance(one, (list, tuple)) else one

    said = json.dumps(marked(value), default=plain, ensure_ascii=False)
    return re.sub(r'"\\u0000(\d+)\\u0000"', lambda found: texts[int(found[1])], said) if texts else said


def from_json(text: str) -> Any:
    """Reads what as_json wrote."""
    return json.loads(text, parse_float=Written)


def as_text(value: Any) -> str:
    """The text of a setting after --set KEY=."""
    return value if isinstance(value, str) else json.dumps(value, default=plain)


def from_yaml(text: str) -> Any:
    """A config as the program reads it: only true and false are truth values, and numbers are those of JSON.
    To PyYAML yes, no, on and off would be truth values too, 2020-01-01 a date and 01:30:00 a number.

    >>> from_yaml("{header: yes, intercept: false, levels: [no, on, 007, 1e3], stop: 01:30:00}")
    {'header': 'yes', 'intercept': False, 'levels': ['no', 'on', '007', 1000.0], 'stop': '01:30:00'}
    """
    import yaml

    return yaml.load(text, _loader())


@functools.cache
def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}

    for kind, words, first in (
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|false", list("tf")),
        ("int", r"-?(0|[1-9][0-9]*)", list("-0123456789")),
        ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", list("-0123456789")),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{words})\Z"), first)
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: Written(node.value))
    return Loader


@contextlib.contextmanager
def as_file(config: Mapping[str, Any] | str | os.PathLike[str], folder: str | None = None) -> Iterator[Path]:
    """Writes a config to a file in `folder` or the current folder. Paths in it start from there."""
    if not isinstance(config, Mapping):
        yield Path(config)
        return
    with temporary(as_json(config).encode(), folder or os.getcwd(), CONFIG_PREFIX, ".yaml") as path:
        yield path


@contextlib.contextmanager
def temporary(content: bytes, folder: str, prefix: str, suffix: str) -> Iterator[Path]:
    """A file for another process, which may remove it after reading; otherwise it is removed at the end.    Removes those that processes have left which were killed. A lock tells which are in use."""
    _remove_left(Path(folder), prefix, suffix)
    number, name = tempfile.mkstemp(suffix, prefix, folder)
    try:
        with open(number, "wb") as file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            file.write(content)
            file.flush()
            yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _remove_left(folder: Path, prefix: str, suffix: str) -> None:
    for path in folder.glob(f"{glob.escape(prefix)}*{suffix}"):
        with contextlib.suppress(OSError):  # locked, or another user's
            if time.time() - path.stat().st_mtime > _FRESH:
                with open(path, "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def is_frame(value: Any) -> bool:
    """A frame of pandas or polars, or a mapping of columns."""
    of_pandas = hasattr(value, "to_csv") and hasattr(value, "columns")  # a Series, such as a row, has none
    return isinstance(value, Mapping) or of_pandas or hasattr(value, "collect_schema")


def looks_like_row(frame: Any) -> bool:
    """Whether the name of a column could be a number, so that the line of names has to be declared.

    >>> looks_like_row({0: [1.5], "y": [2.0]}), looks_like_row({"x": [1.5], "y": [2.0]})
    (True, False)
    """
    return any(_is_number(name) for name in _names(frame))


def _names(frame: Any) -> list[str]:
    lazy = hasattr(frame, "collect_schema")  # of polars
    return [str(name) for name in (frame.collect_schema().names() if lazy else getattr(frame, "columns", frame))]


def _check_names(frame: Any) -> None:
    seen = set()
    for name in _names(frame):
        if name in seen:
            raise Error(f"data: found two columns called {name!r}, expected one column of each name")
        seen.add(name)


def _is_number(name: str) -> bool:
    try:
        float(name.strip().replace(",", "."))
    except ValueError:
        return name.strip() in ("NA", "")
    return True


def level_orders(frame: Any) -> dict[str, list[Any]]:
    """The levels, in their order, of columns of categories, and of texts that look like numbers. Those of a
    polars.Categorical have no order of their own: they are texts.

    >>> level_orders({"x": [1.5, 2.5], "sex": ["f", "m"], "code": ["2", "10"]})
    {'code': ['10', '2']}
    """
    if hasattr(frame, "collect_schema"):
        frame = frame.lazy().collect()
    names = frame if isinstance(frame, Mapping) else frame.columns
    orders = {str(name).strip(): _levels(frame[name]) for name in names}  # as the program reads names
    return {name: levels for name, levels in orders.items() if levels}


def refuse_complex(frame: Any, formula: str | None) -> None:
    """Raises Error for complex numbers, which no model can use, in columns that the formula may use."""
    if hasattr(frame, "collect_schema"):  # polars has no complex numbers
        return
    for name in frame if isinstance(frame, Mapping) else getattr(frame, "columns", ()):
        used = formula is None or "." in formula or str(name).strip() in formula
        if not used or hasattr(frame[name], "columns"):  # two columns of one name
            continue
        kind = str(getattr(frame[name], "dtype", "object"))
        listed = _listed(frame[name]) if kind == "object" else ()
        if kind.startswith("complex") or (isinstance(listed, (list, tuple)) and any(isinstance(one, complex) for one in listed)):
            raise Error(f"data: found complex numbers in column {str(name)!r}, expected real numbers or texts")


def _levels(column: Any) -> list[Any]:
    kind = getattr(column, "dtype", None)
    if type(kind).__name__ in ("CategoricalDtype", "Enum"):
        return [str(one).strip() for one in kind.categories]
    if kind is not None and not str(kind).lower().startswith(("object", "str", "<u", "categorical")):
        return []
    values = [one for one in _listed(column) if not _is_missing(one)]
    texts = {one.strip() for one in values if isinstance(one, str)} - {""}
    return sorted(texts) if all(isinstance(one, str) for one in values) and any(map(_is_number, texts)) else []


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or str(value) in ("<NA>", "NaT")


def _listed(column: Any) -> Any:
    """A column as a list; any other value unchanged."""
    return plain(column) if hasattr(column, "tolist") or hasattr(column, "to_list") else column


def _with_texts(frame: Any) -> Any:
    """A frame of pandas whose categories are texts or numbers, as level_orders has them, and whose durations have
    hours: 3 days alone may be the name of a category."""
    for place, kind in enumerate(frame.dtypes):
        if str(kind).startswith("timedelta"):
            frame = frame.copy(deep=False)
            column = frame.iloc[:, place]
            frame.isetitem(place, column.map(str).where(column.notna()))
        categories = kind.categories if type(kind).__name__ == "CategoricalDtype" else ()
        if not all(isinstance(one, (str, numbers.Number)) for one in categories):
            frame = frame.copy(deep=False)
            frame.isetitem(place, frame.iloc[:, place].cat.rename_categories([str(one) for one in categories]))
    return frame


def one_line(formula: str) -> str:
    """A formula of several lines as one line.

    >>> one_line("y ~ a +\\n    b")
    'y ~ a + b'
    """
    return re.sub(r"\s*[\r\n]\s*", " ", formula).strip()


def table(frame: Any, *, is_new: bool = False) -> bytes:
    """A frame as CSV: numbers with all their digits, truth values as True and False, missing ones as NA. is_new: rows
    to predict, which may have two columns of one name if that is not used.

    >>> table({"x": [1.5, float("nan")], "sex": ["f", "m"], "old": [True, None]})
    b'x,sex,old\\n1.5,f,True\\nNA,m,NA\\n'
    """
    if not is_new:
        _check_names(frame)
    if hasattr(frame, "to_csv"):
        text = _with_texts(frame).to_csv(index=False, na_rep="NA", lineterminator="\n")
    elif hasattr(frame, "collect_schema"):
        text = _of_polars(frame.lazy().collect())
    else:
        text = _columns(frame)
    text = str(text)
    _check_lines(frame, text)
    return text.encode()


def _as_duration(one: datetime.timedelta) -> str:
    """A duration with days and hours, as pandas writes it, because "3 days" may be the name of a category."""
    return f"{one.days} days {datetime.timedelta(seconds=one.seconds, microseconds=one.microseconds)}"


def _of_polars(frame: Any) -> str:
    import polars
    import polars.selectors

    texts = []
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (polars.Object, polars.Binary):
            raise Error(f"data: found {kind} in column {name!r}, expected numbers or texts")
        if kind in (polars.Boolean, polars.Duration):
            write = str if kind == polars.Boolean else _as_duration
            values = [None if one is None else write(one) for one in frame[name]]
            texts.append(polars.Series(name, values, dtype=polars.String))
    return str(frame.with_columns(polars.selectors.float().fill_nan(None)).with_columns(texts).write_csv(null_value="NA"))


def _check_lines(frame: Any, text: str) -> None:
    """Raises Error for a line break in a text, because a row of a table is one line."""
    n_lines = text.count("\n") + text.count("\r")
    with contextlib.suppress(csv.Error):  # a text that is too long for csv: the program says so
        if '"' not in text or sum(1 for _ in _records(text)) == n_lines:
            return
        names = _names(frame)
        for line, record in enumerate(_records(text), 1):
            for name, cell in zip(names, record, strict=True):
                if "\n" in cell or "\r" in cell:
                    found = f"{_row(frame, line)}found {cell[:60]!r} in column {name!r}" if line > 1 else f"found the column {name!r}"
                    raise Error(f"data: {found}, expected text without line breaks")


def _records(text: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""))


@contextlib.contextmanager
def rows_named(frame: Any) -> Iterator[None]:
    """Rewrites an error: a line of the written table becomes a row of the frame."""
    try:
        yield
    except Error as error:
        if is_frame(frame):
            error.args = (_in_terms_of(frame, str(error)),)
        raise


def _row(frame: Any, line: int) -> str:
    """The row of a line, for an error: its label in pandas, else its number from 0. Line 1 has the names of columns."""
    row = line - 2
    if row < 0:
        return ""
    labels = getattr(frame, "index", None)
    label = labels[row] if hasattr(frame, "to_csv") and labels is not None and row < len(labels) else row
    return f"row {label}: "


def _in_terms_of(frame: Any, said: str) -> str:
    said = re.sub(r"^data:(\d+): ", lambda found: f"data: {_row(frame, int(found[1]))}", said)
    said = re.sub(r"found 'NA' for column ([^,]*),", r"found a missing value in column \1,", said)
    return said.replace("(na: drop leaves such rows out)", '(na="drop" leaves such rows out)')


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return "NA"
    return value


def _columns(frame: Mapping[str, Any]) -> str:
    columns = {name: _listed(value) for name, value in frame.items()}
    for name, column in columns.items():
        if not isinstance(column, (list, tuple)):
            raise Error(f"data: found {type(column).__name__} in column {name!r}, expected a value for each row")
        nested = next((one for one in column if isinstance(one, (list, tuple, dict))), None)
        if nested is not None:
            raise Error(f"data: found {type(nested).__name__} in column {name!r}, expected numbers or texts")
    lengths = {name: len(value) for name, value in columns.items()}
    if len(set(lengths.values())) != 1:
        raise Error(f"data: found columns of unequal length, expected one length: {lengths}")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_cell, row) for row in zip(*columns.values(), strict=True))
    return out.getvalue()


def stan_data(data: Any) -> Any:
    """The data of a Stan program as mappings and lists, for JSON. Values of a mapping may be arrays, columns and
    frames of any kind. As in CmdStanPy, truth values are 1 and 0, and a complex number is a pair.

    >>> stan_data({"flag": [True, False], "z": 1 + 2j, "i": range(2)})
    {'flag': [1, 0], 'z': [1.0, 2.0], 'i': [0, 1]}
    """
    if data is None or isinstance(data, (str, os.PathLike)):
        return data
    if not isinstance(data, Mapping):
        raise Error(f"data: found {type(data).__name__}, expected a mapping, or the path of a JSON file")
    values = {}
    for name, value in data.items():
        try:
            values[name] = _stan_value(value)
            as_json(values[name])
        except TypeError as error:
            raise Error(f"data: {name}: {error}, expected numbers, lists and arrays of them") from None
    return json.loads(as_json(values))


def _stan_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _stan_value(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [_stan_value(one) for one in value]
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, complex):
        return [value.real, value.imag]
    return _stan_array(value) if hasattr(value, "__array__") else value


def _stan_array(value: Any) -> Any:
    import numpy as np

    if np.ma.is_masked(value):
        raise TypeError("found a masked value")
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if kind in "fc":  # longdouble too
        return array.astype(np.float64).tolist()
    if kind in "mM":
        raise TypeError(f"found dates or durations ({array.dtype})")
    return array.astype(np.int64).tolist() if kind == "b" else _stan_value(array.tolist()) if kind == "O" else array.tolist()


class Files:
    """Files of a model: (name, suffix) -> content. They are written to the folder of the output,
    under names that describe their content, so that a resumed run finds them."""

    def __init__(self) -> None:
        self._content: dict[str, tuple[str, bytes]] = {}
        self._made: list[Path] = []

    def add(self, option: str, suffix: str, content: bytes) -> None:
        """Adds a file that an option of the model will name."""
        self._content[option] = (suffix, content)

    def write(self, output: Path) -> dict[str, str]:
        """Writes the files beside `output`; returns {option: path relative to the folder of output}."""
        names, self._made = {}, []
        for option, (suffix, content) in self._content.items():
            name = f"{output.name}.{hashlib.sha256(content).hexdigest()[:12]}{suffix}"
            names[option] = name
            if not (output.parent / name).exists():
                part = output.parent / f"{name}.{os.getpid()}.part"
                part.write_bytes(content)
                os.replace(part, output.parent / name)
                self._made.append(output.parent / name)
        return names

    def remove(self, output: Path) -> None:
        """Removes the files that `write` has made, after a run that was refused. A run that holds the lock may use them."""
        if not (output.parent / f"{output.name}.lock").exists():
            for path in self._made:
                path.unlink(missing_ok=True)
        self._made = []
