"""Signals that ask a run to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

__all__ = ["caught"]

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_is_caught = False  # whether the main thread is within `caught`


@contextlib.contextmanager
def caught(stop: Callable[[int], None]) -> Iterator[None]:
    """Within it SIGINT, SIGTERM and SIGUSR1 call `stop` with their number, and do nothing else. If
    there was more than one, the last is raised again at its end. In other threads than the main
    one signals stay as they are, for Python handles them there. So they do within another `caught`, in a run that a log
    density begins: the signal is for the outer run. If it stopped the inner one, that would be a rejected position."""
    global _is_caught
    if _is_caught or threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers: list[int] = []

    def note(number: int, frame: object) -> None:
        numbers.append(number)
        stop(number)

    before = {number: signal.signal(number, note) for number in _STOPS}
    _is_caught = True
    try:
        yield
    finally:
        _is_caught = False
        for number, handler in before.items():  # None: one that is not Python's
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if len(numbers) > 1:
            signal.raise_signal(numbers[-1])
