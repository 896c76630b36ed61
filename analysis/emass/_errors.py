"""What goes wrong: one line each, as an exception."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["Error", "Stopped", "needs"]


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


def needs(module: str, what: str, package: str | None = None) -> ModuleType:
    """The module, or an Error that names the command which installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = package or module.split(".", maxsplit=1)[0]
        raise Error(f"{what} needs {package}: pip install {package} ({error})") from None
