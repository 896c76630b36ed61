"""One rank of a model in Python: python -m emass._worker MODEL CONFIG MODE, started by `sampling`.

It says how far it is, and what went wrong, in the words of the program."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import sys
from pathlib import Path
from typing import Any

from . import _library
from ._errors import Error, needs


def main(model: str, config: str, mode: str) -> int:
    """Runs the rank; returns the exit status."""
    signal.signal(signal.SIGUSR1, _leave)
    cloudpickle = needs("cloudpickle", "ranks of a model in Python")
    rank = 0
    try:
        with _library.Context() as context:
            rank = context.rank
            content, text = _read(context, Path(model), Path(config))
            source = cloudpickle.loads(content)

            def show(line: str) -> None:
                if rank == 0:
                    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
                    print(now, line, file=sys.stderr, flush=True)

            if source.compiling:
                show(source.compiling)
            context.add(source.compile())
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # handled by the run, and ignored once it has ended
            _, notes = context.run(text, config, int(mode), show)
            for note in notes if rank == 0 else []:
                print(f"emass: {note}", file=sys.stderr)
    except Error as error:
        if rank == 0:
            print(f"emass: {error}", file=sys.stderr, flush=True)
        return error.status
    except (KeyboardInterrupt, SystemExit) as ended:  # by the function
        if rank == 0:
            print(f"emass: {ended.__cause__ or 'stopped before the run began'}", file=sys.stderr, flush=True)
        return 75
    return 0


def _leave(number: int, frame: Any) -> None:
    """Handles a signal before the run has begun. The launcher ends ranks that wait in MPI."""
    os._exit(75)


def _read(context: _library.Context, model: Path, config: Path) -> tuple[bytes, str]:
    """The content of the model and, on rank 0, of the config. Their files are removed, for the
    process that wrote them may be killed."""
    content = model.read_bytes()
    text = config.read_text(encoding="utf-8") if context.rank == 0 else ""
    context.agree()
    if context.rank == 0:
        for path in (model, config):
            with contextlib.suppress(OSError):
                path.unlink()
    return content, text


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
