"""Options of models and runs, as a caller, a config or a file gives them."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any

from . import data
from ._errors import Error, path_of

__all__ = ["check_once", "existing", "from_folder", "number", "plain_options", "put", "stored", "text_of", "with_stan_data"]


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the caller has given."""
    return {key: value for key, value in options.items() if value is not None}


def existing(file: str | os.PathLike[str], who: str) -> str:
    """The absolute path of a file, or an Error if there is none."""
    path = os.path.abspath(path_of(file, who))
    if not os.path.exists(path):
        raise Error(f"{who}: {os.fspath(file)}: could not open: no such file")
    return path


def with_stan_data(options: dict[str, Any], files: data.Files, given: Any) -> dict[str, Any]:
    """The options of a Stan program. Data that are not a file become one."""
    content = data.stan_data(given)
    if isinstance(content, (str, os.PathLike)):
        options["data"] = os.path.abspath(os.fspath(content))
    elif content is not None:
        files.add("data", ".json", data.as_json(content).encode())
    return options


def from_folder(value: Any, folder: str) -> Any:
    """Text as an absolute path if it is the path of a file in the folder."""
    if isinstance(value, str) and value and not os.path.isabs(value):
        path = os.path.join(folder, os.path.expandvars(value))
        if os.path.isfile(path):
            return path
    if isinstance(value, Mapping):
        return {key: from_folder(one, folder) for key, one in value.items()}
    return value


def check_once(given: Mapping[str, Any], settings: Any, who: str) -> None:
    """Raises Error if an option, by its key in a config, is also in settings."""
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
        raise Error(f"{path}: found no config, expected an output of emass")
    text, inner = text_of(attributes["config"]), text_of(attributes.get("config_folder", "."))
    return data.from_yaml(text), os.path.normpath(os.path.join(os.path.dirname(path), inner)), attributes
