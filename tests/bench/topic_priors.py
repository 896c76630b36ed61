"""Held-out perplexity of lda by its priors: learned ones beside a grid of fixed ones.

Each run has one chain of lda_gibbs, `--warmup` and `--draws` iterations. Test documents are folded in
by EM and by the model's own Gibbs sampler, both with the alpha of the run, and probabilities are
averaged over draws (src/topics/lda_held_out.h). The table has for each number of topics the perplexity
with learned alpha and beta (the default), with 0.1 and 0.01, and the best of the grid, and how far the learned ones
are from that in per cent (negative: below it). Without TEST every fifth document of 20 tokens or
more is held out.
"""
import argparse
import itertools
import json
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import h5py
import numpy as np

from corpora import lines, without_test

LEARNED, USUAL = ("learned", "learned"), ("0.1", "0.01")


def sample(path, most, folder):
    """A file of `most` documents, evenly chosen."""
    documents = list(lines(path))
    chosen = sorted({*np.linspace(0, len(documents) - 1, min(most, len(documents))).astype(int)})
    out = os.path.join(folder, f"{most}-{os.path.basename(path)}.ldac")
    with open(out, "w") as file:
        for d in chosen:
            print(len(documents[d]), *(f"{w}:{c}" for w, c in documents[d]), file=file)
    return out


def run(options, folder, n_topic, prior, seed):
    """The perplexities by EM and by Gibbs."""
    name = os.path.join(folder, "-".join((str(n_topic), *prior, str(seed))))
    with open(name + ".yaml", "w") as file:
        print(f"""model: {{name: lda, topics: {n_topic}, data: {options.train}, test: {options.test},
  alpha: {prior[0]}, beta: {prior[1]}, fold_in: both}}
run: {{chains: 1, warmup: {options.warmup}, draws: {options.draws}, seed: {seed}}}
output: {{checkpoint_every: 1d}}""", file=file)
    subprocess.run([options.emass, "run", name + ".yaml", "--output", name + ".h5", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    with h5py.File(name + ".h5") as file:
        found = [file[f"averages/{which}"][0, 0] for which in ("perplexity", "perplexity_gibbs")]
        alpha, beta = file["averages/alpha"][0, 0].sum(), file["averages/beta"][0, 0]
    os.remove(name + ".h5")
    print(f"# {n_topic} topics, alpha {prior[0]}, beta {prior[1]}, seed {seed}: EM {found[0]:.1f}, Gibbs "
          f"{found[1]:.1f}; sum of alpha {alpha:.3g}, beta {beta:.3g}", flush=True)
    return found


def line(n_topic, score, means):
    fixed = {prior: m[score] for prior, m in means.items() if prior != LEARNED}
    best = min(fixed, key=fixed.get)
    learned = means[LEARNED][score]
    print(f"| {n_topic} | {('EM', 'Gibbs')[score]} | {learned:.1f} | {fixed[USUAL]:.1f} | "
          f"{fixed[best]:.1f} | {best[0]}, {best[1]} | {100 * (learned / fixed[best] - 1):+.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("emass")
    parser.add_argument("train")
    parser.add_argument("test", nargs="?")
    parser.add_argument("--topics", type=int, nargs="+", default=[20, 100, 500])
    parser.add_argument("--alpha", nargs="+", default=["0.01", "0.03", "0.1", "0.3"])
    parser.add_argument("--beta", nargs="+", default=["0.003", "0.01", "0.03", "0.1"])
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each prior")
    parser.add_argument("--documents", type=int, help="at most so many documents are learned from")
    parser.add_argument("--test-documents", type=int, default=1000, help="and scored")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--json", help="write the perplexities there")
    options = parser.parse_args()
    options.emass, options.train = map(os.path.abspath, (options.emass, options.train))
    priors = [*dict.fromkeys([LEARNED, USUAL, *itertools.product(options.alpha, options.beta)])]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        if not options.test:
            options.train, options.test = without_test(options.train, folder, every=5)
        if options.documents:
            options.train = sample(options.train, options.documents, folder)
        options.test = sample(options.test, options.test_documents, folder)
        tasks = {(k, prior): [pool.submit(run, options, folder, k, prior, 1 + s)
                              for s in range(options.seeds)]
                 for k in options.topics for prior in priors}
        means = {key: np.mean([f.result() for f in futures], axis=0) for key, futures in tasks.items()}
    print("| topics | folded in by | learned | 0.1, 0.01 | best of the grid | its alpha, beta | % |")
    print("| --: | --- | --: | --: | --: | --: | --: |")
    for k, score in itertools.product(options.topics, range(2)):
        line(k, score, {prior: means[k, prior] for prior in priors})
    if options.json:
        with open(options.json, "w") as file:
            json.dump([[k, *prior, *m] for (k, prior), m in means.items()], file)


if __name__ == "__main__":
    main()
