"""Progress: a bar in a terminal or a notebook, lines elsewhere."""

from __future__ import annotations

import contextlib
import html
import re
import sys
import time
from collections.abc import Callable, Sequence

__all__ = ["Bar", "describe", "describe_report"]

_WIDTH = 24


def describe(
    done: int, total: int, warmup: int, divergences: int, r_hat: float, ess: float, some_numbers: bool = False
) -> str:
    """The line of a report, as the program writes it: iterations of all, warmup included. R-hat and
    ESS of some numbers are bounds, as others may be worse.

    >>> describe(150, 300, 100, 0, 1.02, 310.0)
    'sampling 150/300  R-hat 1.020  ESS 310'
    >>> describe(150, 300, 100, 0, 1.02, 310.0, some_numbers=True)
    'sampling 150/300  R-hat at least 1.020  ESS at most 310'
    """
    line = f"{'sampling' if done > warmup else 'warmup'} {done}/{total}"
    if r_hat == r_hat:  # not NaN
        least, most = ("at least ", "at most ") if some_numbers else ("", "")
        line += f"  R-hat {least}{r_hat:.3f}  ESS {most}{ess:.0f}"
    return line + (f"  divergences {divergences}" if divergences else "")


def describe_report(count: Sequence[int], level: Sequence[float]) -> str:
    """The line of the numbers of em_host_report."""
    return describe(*count[:4], *level, some_numbers=bool(count[6]))


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
    """Shows lines such as "warmup 100/1950"; `shown` False: nothing at all."""

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown
        self._cell = _in_notebook() if shown else None
        self._terminal = shown and not self._cell and sys.stderr.isatty()
        self._last = 0.0
        self._said = ""

    def show(self, line: str) -> None:
        """The line, in place of the last one; elsewhere than in a terminal not more often than
        twice a second, but for the first of a phase."""
        if not self._shown:
            return
        found = re.search(r"(\d+)/(\d+)", line)
        part = min(1.0, int(found[1]) / max(1, int(found[2]))) if found else float(line.startswith("finishing"))
        phase = line.split(" ", maxsplit=1)[0]
        if not self._terminal and phase == self._said and part < 1 and time.monotonic() - self._last < 0.5:
            return
        self._said, self._last = phase, time.monotonic()
        if self._cell:
            self._cell(f'<progress value="{part:.3f}" style="width: 20em"></progress> {html.escape(line)}', line)
        elif self._terminal:
            full = round(part * _WIDTH)
            bar = f"{'█' * full}{'·' * (_WIDTH - full)} {100 * part:3.0f} % {line}"
            print(f"\r{bar:<79.79}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leaves the line of a terminal."""
        if self._terminal and self._said:
            print(file=sys.stderr)
