#!/usr/bin/env python3
"""Copies the pages of the guide, and all files that they link to, into one folder.

    analysis/guide/collect.py FOLDER

MkDocs builds a site from one folder. The pages stand in several: the README, this folder, and folders of src
of the code. Files keep their paths within the repository, so that links stay as they are. FOLDER is
replaced. A link to a file that does not exist, or that lies outside the repository, is an error.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)([^)]*)\)")  # [words](target)
NAMED = re.compile(r"^\[[^\]]+\]: *([^#\s]+)", re.MULTILINE)  # [name]: target


def collect(page: Path) -> tuple[str, set[Path]]:
    """The text of a page for the site, and the files of the repository that it links to. A link to a folder leads to
    its README; where it has none, the name of the folder stands alone."""
    files = set()

    def find(target: str) -> Path:
        path = (page.parent / target).resolve()
        if not path.is_dir() and (not path.is_file() or ROOT not in path.parents):
            sys.exit(f"{page.relative_to(ROOT)}: found a link to {path}, expected a file of the repository")
        return path

    def resolve(link: re.Match) -> str:
        words, target, rest = link.groups()
        if "://" in target:
            return link[0]
        path = find(target)
        if path.is_dir() and not (path / "README.md").is_file():
            return words
        if path.is_dir():
            path, target = path / "README.md", target.rstrip("/") + "/README.md"
        files.add(path)
        return f"[{words}]({target}{rest})"

    text = LINK.sub(resolve, page.read_text())
    files.update(find(target) for target in NAMED.findall(text) if "://" not in target)
    return text, files


def main() -> None:
    folder = Path(sys.argv[1])
    waiting = [ROOT / "README.md", *sorted(ROOT.glob("analysis/guide/*.md"))]
    seen = set(waiting)
    shutil.rmtree(folder, ignore_errors=True)
    while waiting:
        file = waiting.pop()
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(file, copy)
            continue
        text, files = collect(file)
        copy.write_text(text)
        waiting += files - seen
        seen |= files


main()
