"""Progress: a bar in a terminal or a notebook, lines elsewhere."""

from __future__ import annotations

import contextlib
import html
import os
import re
import shutil
import sys
import time
from collections.abc import Callable

__all__ = ["Bar"]

_WIDTHS = (24, 12)  # of a bar, as there is room


def _columns() -> int:
    """The width of the terminal that shows standard error; standard output may go elsewhere."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # one that is not a file
        if found := os.get_terminal_size(sys.stderr.fileno()).columns:
            return found
    return shutil.get_terminal_size().columns


def drawn(part: float, line: str, columns: int) -> str:
    """A bar and the line after it, in less than `columns`. The bar is as wide as fits. Without room    for the line it loses its rate first, then others from the end.

    >>> drawn(0.5, "warmup 100/200", 40)
    '██████······  50 % warmup 100/200      '
    >>> drawn(0.5, "sampling 100/200  ESS at most 310  620 draws/s  left 1 s", 50)
    ' 50 % sampling 100/200  ESS at most 310  left 1 s'
    >>> drawn(0.5, "sampling 100/200  ESS at most 310  620 draws/s  left 1 s", 40)
    'sampling 100/200  ESS <= 310  left 1 s '
    >>> drawn(0.5, "sampling 100/200  ESS at most 310  620 draws/s  left 1 s", 38)
    ' 50 % sampling 100/200  ESS <= 310   '
    """
    for found, shorter in ((r"  \S+ draws/s", ""), (r" at most ", " <= "), (r" at least ", " >= ")):
        if len(line) >= columns:
            line = re.sub(found, shorter, line)
    while len(line) >= columns and "  " in line:
        line = line.rpartition("  ")[0]
    room = columns - 1 - len(line) - len("100 % ")
    if room >= 0:
        width = next((width for width in _WIDTHS if width < room), 0)
        full = round(part * width)
        line = f"{'█' * full}{'·' * (width - full)}{' ' * bool(width)}{100 * part:3.0f} % {line}"
    return line[: columns - 1].ljust(columns - 1)


def _in_notebook() -> Callable[[str, str], None] | None:
    """Shows a page and a text in a cell's output, in place of what it showed last."""
    with contextlib.suppress(ImportError, AttributeError):
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython().__class__.__name__ == "ZMQInteractiveShell":
            cell = display({"text/plain": ""}, raw=True, display_id=True)
            return lambda page, text: cell.update({"text/html": page, "text/plain": text}, raw=True)
    return None


class Bar:
    """Shows lines such as "warmup 100/1950". With `shown` False it shows nothing."""

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown
        self._cell = _in_notebook() if shown else None
        self._terminal = shown and not self._cell and sys.stderr.isatty()
        self._last = 0.0
        self._said = ""

    def show(self, line: str) -> None:
        """Shows a line in place of the last one. In a terminal ten times a second at most, elsewhere        twice; but the first of a phase and the last are always shown."""
        if not self._shown:
            return
        found = re.search(r"(\d+)/(\d+)", line)
        part = min(1.0, int(found[1]) / max(1, int(found[2]))) if found else float(line.startswith("finishing"))
        phase = line.split(" ", maxsplit=1)[0]
        if phase == self._said and part < 1 and time.monotonic() - self._last < (0.1 if self._terminal else 0.5):
            return
        self._said, self._last = phase, time.monotonic()
        if self._cell:
            self._cell(f'<progress value="{part:.3f}" style="width: 20em"></progress> {html.escape(line)}', line)
        elif self._terminal:
            print(f"\r{drawn(part, line, _columns())}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Ends the line in a terminal."""
        if self._terminal and self._said:
            print(file=sys.stderr)
