#!/usr/bin/env python3
"""Copies the pages of the guide, and all files that they link to, into one folder.

    analysis/guide/collect.py FOLDER

MkDocs builds a site from one folder. The pages stand in several: the README, this folder, and rooms
of the code. Files keep their paths within the repository, so that links stay as they are. FOLDER is
replaced. A link to a file that does not exist, or that lies outside the repository, is an error.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def links(page: Path) -> set[Path]:
    """The files of the repository that a page links to, titles of pages left out."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    return {(page.parent / target).resolve() for target in targets if "://" not in target}


def main() -> None:
    folder = Path(sys.argv[1])
    waiting = [ROOT / "README.md", *sorted(ROOT.glob("analysis/guide/*.md"))]
    seen = set(waiting)
    shutil.rmtree(folder, ignore_errors=True)
    while waiting:
        file = waiting.pop()
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        for target in links(file) if file.suffix == ".md" else ():
            if not target.is_file() or ROOT not in target.parents:
                sys.exit(f"{file.relative_to(ROOT)}: found a link to {target}, expected a file of the repository")
            if target not in seen:
                seen.add(target)
                waiting.append(target)


main()
