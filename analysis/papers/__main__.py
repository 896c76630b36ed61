"""Runs the experiments of the papers and writes them up, paper's numbers beside ours.

    PYTHONPATH=analysis python -m papers BUILD [--folder F] [--topics | --networks [--limit 10m]] [--only PATTERN]... [--shorten N]
                       [--no-run]

The runs are those of jobs/papers/runs; one that is done is not done again. F (BUILD/papers) gets
papers.md, papers.html and a PNG for each figure. --shorten divides the length of every run.
"""

import argparse
import os
import sys
from pathlib import Path

from papers import euler, paper_000, paper_002, paper_003, paper_004, paper_networks, paper_topics, plain_numpy
from papers.corpora import make_corpora
from papers.data import make_held_out, make_tables
from papers.page import Page
from papers.runs import Results, execute, read_runs, together
from papers.verdict import EXPLAINED

SHOWS = """
This page shows each table and figure of the papers that has numbers or curves to compare with, run
again: the paper's numbers beside ours. Ours are computed from the files of draws that `emass` wrote
when this page was made; the papers' are copied from their text. Each run is a line of
`jobs/papers/runs`; `as printed` has the algorithm of the paper, the others the correct one."""

LEAVES_OUT = """
Left out: experiments whose data are not public, and runs that the list Not run names. Times are of this
machine, the papers' of theirs: ratios within a column can be compared, columns cannot. All are of
one chain on one core, the smallest of three rounds in which runs and plain numpy, where it is beside
them, take turns."""


TO_BE_RUN = "to be run"


def say_left_out(page, runs):
    """Which runs the page has not, and why, in one list; and to whoever made it the data that lack."""
    reasons = {}
    for run in runs:
        if run.why:
            reasons.setdefault(run.why, []).append(run.name)
    if not reasons:
        return page.say("All runs were made.")
    page.heading("Not run")
    lines = []
    for why, names in sorted(reasons.items()):
        shown = ", ".join(f"`{part}`" for part in together(names, [run.name for run in runs]))
        count = f"{len(names)} run" + ("s" if len(names) > 1 else "")
        if why == TO_BE_RUN:
            lines.append(f"{count} not made, or not at their end: {shown}.")
        elif why.startswith("needs "):
            lack = why.removeprefix("needs ")
            if Path(lack).is_relative_to(page.folder):  # it is made, and not fetched
                lack, source = (
                    Path(lack).relative_to(page.folder),
                    "`make papers-topics` and `make papers-networks` make theirs",
                )
            else:
                source = "`make data` fetches what is public, EMASS_DATA names the folder of the rest"
            lines.append(f"{count} for want of `{lack}` ({source}): {shown}.")
            print(f"papers: {count} left out for want of {lack} ({source.replace('`', '')})", file=sys.stderr)
        else:
            lines.append(f"{count} failed, {why}: {shown}.")
    page.items(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path, help="the folder that has emass")
    parser.add_argument("--folder", type=Path, help="where all goes; default BUILD/papers")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only runs of such names, as '000/normal/*'; repeatable",
    )
    parser.add_argument(
        "--shorten", type=int, default=1, metavar="N", help="runs of an N-th of the length: a test, not a result"
    )
    parser.add_argument("--topics", action="store_true", help="the topic models, and they alone")
    parser.add_argument("--networks", action="store_true", help="the networks, and they alone")
    parser.add_argument(
        "--limit", metavar="TIME", help="what a run may take this time, as 10m; it goes on the next time"
    )
    parser.add_argument("--no-run", action="store_true", help="only write up what is there")
    args = parser.parse_args()
    folder = (args.folder or args.build / "papers").resolve()
    folder.mkdir(parents=True, exist_ok=True)

    make_tables(folder)
    runs = read_runs(folder, args.only, args.shorten)
    topics = read_runs(folder, args.only, args.shorten, "topics")
    networks = read_runs(folder, args.only, args.shorten, "networks")
    every = runs + topics + networks
    asked = topics if args.topics else networks if args.networks else runs
    if args.no_run:
        asked = []
    if args.topics:
        make_corpora(folder)
    if args.networks and not args.no_run:
        make_held_out(folder)
    workers = 1 if args.networks or args.topics else os.cpu_count()  # in their order, each with its processor time
    beside = [lambda: plain_numpy.measure(folder, args.shorten)]
    if args.networks and not args.no_run and not args.only and args.shorten == 1:
        euler.measure(folder)
    execute(asked, (args.build / "emass").resolve(), folder, workers, args.limit, beside)
    for run in every:  # of networks the page shows what was cut, too
        is_there = run.file.exists() if run in networks else run.has_ended()
        if not (is_there and run.is_as_asked()):
            run.why = run.why or run.missing_data(dict(os.environ, PAPERS=str(folder))) or TO_BE_RUN

    page = Page("The papers' experiments, run again", folder)
    page.say(SHOWS)
    page.say(LEAVES_OUT)
    page.say(EXPLAINED)
    if args.shorten > 1:
        page.say(f"Shortened {args.shorten} times: a test of this page, not a result.")
    page.contents()
    for paper in (paper_000, paper_002, paper_003, paper_004, paper_topics, paper_networks):
        paper.write(page, Results(every, folder))
    say_left_out(page, every)
    page.write("papers")
    print(folder / "papers.md")
    failed = [run for run in asked if run.why and run.why != TO_BE_RUN and not run.why.startswith("needs ")]
    for run in failed:
        print(f"papers: {run.name}: {run.why}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
