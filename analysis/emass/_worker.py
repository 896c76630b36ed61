"""One rank of a model in Python: python -m emass._worker MODEL CONFIG MODE, started by `sampling`.

It says how far it is, and what went wrong, in the words of the program."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from . import _library
from ._errors import Error, needs
from .progress import describe


def main(model: str, config: str, mode: str) -> int:
    """Runs it; returns the exit status."""
    cloudpickle = needs("cloudpickle", "ranks of a model in Python")
    rank = 0
    try:
        with _library.Context() as context:
            rank = context.rank
            source = cloudpickle.loads(Path(model).read_bytes())
            context.add(source.compile())

            def show(at: tuple[list[int], list[float]]) -> None:
                if rank == 0:
                    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
                    print(now, describe(*at[0][:4], *at[1]), file=sys.stderr, flush=True)

            text = Path(config).read_text(encoding="utf-8") if rank == 0 else ""
            _, notes = context.run(text, config, int(mode), show)
            for note in notes if rank == 0 else []:
                print(f"emass: {note}", file=sys.stderr)
    except Error as error:
        if rank == 0:
            print(f"emass: {error}", file=sys.stderr, flush=True)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
