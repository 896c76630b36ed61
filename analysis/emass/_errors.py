"""What goes wrong: one line each, as an exception."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from types import ModuleType
from typing import Any

__all__ = ["ConvergenceWarning", "Error", "NotInstalled", "Stopped", "first_line", "needs", "path_of", "warn"]


class Error(RuntimeError):
    """What emass said; `status` is its exit status: 1 while running, 2 usage, config or data."""

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
    """The program, its library or MPI is not to be found."""


class ConvergenceWarning(UserWarning):
    """The run is not converged; the verdict says why."""


def first_line(error: BaseException) -> str:
    """What another package said, with the kind of its exception."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def path_of(value: Any, what: str, expected: str = "the path of a file") -> str:
    """The text of a path, or an Error."""
    if not isinstance(value, (str, os.PathLike)):
        raise Error(f"{what}: found {type(value).__name__}, expected {expected}")
    return os.fspath(value)


def warn(text: str, category: type[Warning]) -> None:
    """A warning of the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def needs(module: str, what: str, package: str | None = None) -> ModuleType:
    """The module, or an Error that names the command which installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = package or module.split(".", maxsplit=1)[0]
        raise Error(f"{what} needs {package}: pip install {package} ({error})") from None
