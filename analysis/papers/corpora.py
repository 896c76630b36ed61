"""Corpora of the papers' topic models, cut from those of EMASS_DATA: which documents learn and test."""

import gzip
import lzma
import os
from pathlib import Path

import numpy as np

ICML_TEST = 5  # every fifth abstract
WIKI_LONG, WIKI_TEST = 20, 500  # words of an article, and articles to test on, or to choose steps by
NEWS_TEST = 500


def lines(path):
    opener = {".gz": gzip.open, ".xz": lzma.open}[path.suffix]
    with opener(path, "rt") as file:
        return file.readlines()


def length(line):
    return sum(int(entry.split(":")[1]) for entry in line.split()[1:])


def write(path, documents):
    path.write_text("".join(documents))


def make_corpora(folder):
    """Chosen by numbers of their own, so that they are the same each time."""
    data = Path(os.environ.get("EMASS_DATA", "/nowhere"))
    icml = data / "icml_abstracts/icml1918.ldac.gz"
    wiki = data / "wikipedia/wiki7702.ldac.xz"
    wiki10k = data / "wikipedia/wiki10k.ldac.xz"
    news = data / "20news/dpfa2000.test.ldac.gz"
    if icml.exists() and not (folder / "icml.test.ldac").exists():
        train, test = split(lines(icml), ICML_TEST)
        write(folder / "icml.train.ldac", train)
        write(folder / "icml.test.ldac", test)
    if wiki.exists() and not (folder / "wiki.stream.ldac").exists():
        long = [line for line in lines(wiki) if length(line) >= WIKI_LONG]
        order = np.random.default_rng(2).permutation(len(long))
        parts = {"steps": order[:WIKI_TEST], "test": order[WIKI_TEST : 2 * WIKI_TEST], "stream": order[2 * WIKI_TEST :]}
        for name, chosen in parts.items():
            write(folder / f"wiki.{name}.ldac", [long[i] for i in chosen])
    if wiki10k.exists() and not (folder / "wiki10k.train.ldac").exists():
        documents = lines(wiki10k)
        order = np.random.default_rng(3).permutation(len(documents))
        write(folder / "wiki10k.test.ldac", [documents[i] for i in order[:WIKI_TEST]])
        write(folder / "wiki10k.train.ldac", [documents[i] for i in order[WIKI_TEST:]])
    if news.exists() and not (folder / "news.test.ldac").exists():
        chosen = lines(news)
        order = np.random.default_rng(0).permutation(len(chosen))[:NEWS_TEST]
        write(folder / "news.test.ldac", [chosen[i] for i in order])


def split(documents, share):
    """One in `share`, at random, for a test."""
    order = np.random.default_rng(4).permutation(len(documents))
    test = set(order[: len(documents) // share].tolist())
    train = [line for i, line in enumerate(documents) if i not in test]
    return train, [line for i, line in enumerate(documents) if i in test]
