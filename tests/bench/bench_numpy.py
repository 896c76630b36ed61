"""The two timed tasks of paper 003 (SGHMC with a gradient, and with data) against plain numpy on the
same machine: seconds for the paper's 500000 inner steps, and numpy's over ours; best of three."""

import json
import sys
import tempfile
from pathlib import Path

project = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(project / "analysis"))

from papers.paper_003 import PAPER_SECONDS, numpy_seconds  # noqa: E402
from papers.data import make_tables  # noqa: E402
from papers.runs import Results, execute, read_runs  # noqa: E402


def times(emass, folder):
    """Of each task, ours and numpy's, and the number of steps."""
    make_tables(folder)
    runs = read_runs(folder, ["003/time/*"], 1)
    execute(runs, emass, folder, 1)
    results = Results(runs, folder)
    out = {}
    for task in PAPER_SECONDS:
        run = f"003/time/{task}"
        if not results.has(run):
            sys.exit(f"{run}: {results.why(run)}")
        steps = 50 * results.iterations(run)
        out[task] = results.seconds(run), numpy_seconds(folder, steps)[task], steps
    return out


def main(build):
    rounds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(times((build / "emass").resolve(), Path(folder)))
    for task in PAPER_SECONDS:
        ours, numpy, steps = (min(column) for column in zip(*(r[task] for r in rounds)))
        name = f"SGHMC {task.replace('-', ' ')}, {steps} steps, vs numpy"
        line = {"name": name, "value": round(ours, 4), "unit": "s", "ratio": round(numpy / ours, 1)}
        print(json.dumps(line))


main(Path(sys.argv[1]))
