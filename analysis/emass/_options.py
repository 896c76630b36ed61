"""Options of models and of runs: what a caller gives, what a config and a file have."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any

from . import data
from ._errors import Error, path_of

__all__ = ["check_once", "existing", "from_folder", "number", "plain_options", "put", "stored", "text_of", "with_stan_data"]


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given."""
    return {key: value for key, value in options.items() if value is not None}


def existing(file: str | os.PathLike[str], who: str) -> str:
    """The absolute path of a file that is there."""
    path = os.path.abspath(path_of(file, who))
    if not os.path.exists(path):
        raise Error(f"{who}: {os.fspath(file)}: could not open: no such file")
    return path


def with_stan_data(options: dict[str, Any], files: data.Files, given: Any) -> dict[str, Any]:
    """Options of a Stan program, whose data are a file already or become one."""
    content = data.stan_data(given)
    if isinstance(content, (str, os.PathLike)):
        options["data"] = os.path.abspath(os.fspath(content))
    elif content is not None:
        files.add("data", ".json", data.as_json(content).encode())
    return options


def from_folder(value: Any, folder: str) -> Any:
    """Text that is the path of a file in the folder, as an absolute one."""
    if isinstance(value, str) and value and not os.path.isabs(value):
        path = os.path.join(folder, os.path.expandvars(value))
        if os.path.isfile(path):
            return path
    if isinstance(value, Mapping):
        return {key: from_folder(one, folder) for key, one in value.items()}
    return value


def check_once(given: Mapping[str, Any], settings: Any, who: str) -> None:
    """Options by their keys in a config, which settings must not give too."""
    for key, value in given.items():
        if value is not None and isinstance(settings, Mapping) and key in settings:
            name = "output" if key == "output.file" else key.split(".")[1]
            raise Error(f"{who}: found {name}={value!r} and settings={{{key!r}: {settings[key]!r}}}, expected one of them")


def number(name: str, value: Any) -> Any:
    """An integer, or a word such as auto; emass checks the range."""
    if isinstance(value, bool) or not isinstance(value, (numbers.Integral, str)):
        raise Error(f"{name}: found {value!r}, expected an integer")
    return value


def put(config: dict[str, Any], key: str, value: Any) -> None:
    """config["a"]["b"] = value for "a.b"."""
    if not isinstance(key, str):
        raise Error(f"settings: found {key!r}, expected the name of an option, such as stop.ess")
    *sections, last = key.split(".")
    for section in sections:
        config[section] = dict(config.get(section) or {})
        config = config[section]
    config[last] = value


def text_of(attribute: Any) -> str:
    """An attribute of a file as text."""
    return attribute.decode() if isinstance(attribute, bytes) else str(attribute)


def stored(path: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """The config of a file, the folder from which its paths start, and its attributes."""
    import h5py

    try:
        with h5py.File(path) as file:
            attributes = dict(file.attrs)
    except OSError as error:
        raise Error(f"{path}: could not be read: {error}") from None
    if "config" not in attributes:
        raise Error(f"{path}: no config in it: expected a file of emass")
    text, inner = text_of(attributes["config"]), text_of(attributes.get("config_folder", "."))
    return data.from_yaml(text), os.path.normpath(os.path.join(os.path.dirname(path), inner)), attributes
