"""Corpora of the benches of topic models: files in LDA-C format, plain, .gz or .xz."""
import gzip
import lzma
import os

SPLIT, SHORTEST = 50, 20


def lines(path):
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(path)[1], open)
    with opener(path, "rt") as file:
        for line in file:
            yield [tuple(map(int, pair.split(":"))) for pair in line.split()[1:]]


def without_test(path, folder, every=SPLIT):
    """Files of the documents that are learned from, and of those that are scored, one of `every`."""
    files = [os.path.join(folder, name) for name in ("train.ldac", "test.ldac")]
    with open(files[0], "w") as train, open(files[1], "w") as test:
        long = (d for d in lines(path) if sum(c for _, c in d) >= SHORTEST)
        for i, entries in enumerate(long):
            text = " ".join(f"{w}:{c}" for w, c in entries)
            print(len(entries), text, file=test if i % every == every // 2 else train)
    return files
