#!/usr/bin/env python3
"""Mixtures of topics as Parquet: what pyarrow reads is what emass topics writes as HDF5. TAP; $1: the build."""
import os
import sys
import tempfile

import lib
from lib import report

lib.needs_front_ends("mixtures as Parquet")
try:
    import pyarrow.parquet
except ImportError:
    lib.skip("mixtures as Parquet", "pyarrow is not in build/python-venv")
    lib.finish()
os.environ["EMASS"] = lib.EMASS
sys.path.insert(0, os.path.join(lib.ROOT, "analysis"))

import h5py  # noqa: E402
import numpy as np  # noqa: E402

import emass  # noqa: E402

N, WORDS = 40, [f"w{i}" for i in range(20)]


def check_mixtures():
    random = np.random.default_rng(1)
    counts = np.zeros((N, len(WORDS)), int)
    for d in range(N):
        counts[d, random.choice(10, 6, replace=False) + 10 * (d % 2)] = 1
    names = ['a, "b"', "two\nlines", "é"] + [f"d{i}" for i in range(3, N)]
    emass.write_corpus("c.h5", counts, WORDS, names)
    emass.run({"model": {"name": "lda", "data": "c.h5", "topics": 3}, "run": {"chains": 2, "warmup": 20, "draws": 20}},
              ranks=1, output="run.h5", progress=False)
    lib.limited(lib.EMASS, "topics", "run.h5", "--documents", "c.h5", "--output", "mixtures.h5")
    with h5py.File("mixtures.h5") as file:
        value, documents = file["table/value"][:], [name.decode() for name in file["table/document"]]
    emass.read_topics("run.h5", "c.h5").document_topic.to_parquet("mixtures.parquet")
    table = pyarrow.parquet.read_table("mixtures.parquet").to_pandas()
    report(table.shape == (N, 3) and np.array_equal(table.to_numpy(), value), "the numbers, to the last bit", table)
    report(list(table.index) == documents == [name.replace("\n", "\\n") for name in names] and table.index.name == "document", "the names of documents", list(table.index)[:3], documents[:3])
    report([int(name) for name in table.columns] == [0, 1, 2], "the numbers of topics", table.columns)


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check_mixtures()
lib.finish()
