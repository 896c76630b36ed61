"""The exceptions and warnings of the package. The text of each is one line."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from types import ModuleType
from typing import Any

__all__ = ["ConvergenceWarning", "Error", "NotInstalled", "Stopped", "first_line", "needs", "path_of", "warn"]


class Error(RuntimeError):
    """An error of emass, with its message. `status`: 1 if a run failed, 2 for wrong usage, config or data."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class Stopped(Error):
    """The run stopped early with a checkpoint (status 75). `emass.resume` continues `file`; None:
    nothing was kept."""

    def __init__(self, message: str, status: int = 75, file: str | None = None) -> None:
        super().__init__(message, status)
        self.file = file


class NotInstalled(Error, FileNotFoundError):
    """The program, its library or MPI was not found."""


class ConvergenceWarning(UserWarning):
    """The run is not converged; the verdict says why."""


def first_line(error: BaseException) -> str:
    """The first line of an exception of another package, with its type."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def path_of(value: Any, what: str, expected: str = "the path of a file") -> str:
    """The text of a path, or an Error."""
    if not isinstance(value, (str, os.PathLike)):
        raise Error(f"{what}: found {type(value).__name__}, expected {expected}")
    return os.fspath(value)


def warn(text: str, category: type[Warning]) -> None:
    """Warns at the line of the caller of this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def needs(module: str, what: str, package: str | None = None) -> ModuleType:
    """Imports a module, or raises an Error with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = package or module.split(".", maxsplit=1)[0]
        raise Error(f"{what} needs {package}: pip install {package} ({error})") from None
