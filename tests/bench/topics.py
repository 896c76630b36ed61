"""Held-out perplexity against CPU seconds: lda by lda_gibbs beside tomotopy, one thread each.

Sweeps of one run are not alike (warmup begins with few documents): the seconds of each point are
measured, by runs that end there.

Both are scored from their laws of words alone, on the same fifth of the tokens of the same test
documents, by the same definition (src/model/lda_held_out.h). The seconds are of sampling: reading
and scoring are left out.
"""
import argparse
import gzip
import lzma
import os
import resource
import subprocess
import tempfile
import time

import h5py
import numpy as np
import tomotopy

ALPHA, STEPS, SCORED = 0.1, 100, 5
LOW = np.uint64(0xFFFFFFFF)


def lines(path):
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(path)[1], open)
    with opener(path, "rt") as file:
        for line in file:
            yield [tuple(map(int, pair.split(":"))) for pair in line.split()[1:]]


def philox(low, high):
    """Philox4x32-10 of key 0: four words for each counter."""
    half = np.uint64(32)
    x = [low & LOW, low >> half, np.full_like(low, high & 0xFFFFFFFF), np.full_like(low, high >> 32)]
    key = [0, 0]
    for _ in range(10):
        a, b = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [(b >> half) ^ x[1] ^ np.uint64(key[0]), b & LOW,
             (a >> half) ^ x[3] ^ np.uint64(key[1]), a & LOW]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(x, axis=1)


def is_scored(document, n):
    """Which tokens of a test document are scored: counted by document, not by the run."""
    blocks = np.arange((n + 3) // 4, dtype=np.uint64) + np.uint64((document & 0xFFFFFF) << 40)
    words = philox(blocks, document >> 24).reshape(-1)[:n]
    return (words * np.uint64(SCORED)) >> np.uint64(32) == 0


def split(documents):
    for d, entries in enumerate(documents):
        word = np.repeat([w for w, _ in entries], [c for _, c in entries]).astype(int)
        scored = is_scored(d, len(word))
        yield (*np.unique(word[~scored], return_counts=True),
               *np.unique(word[scored], return_counts=True))


def perplexity(phi, parts):
    phi, total, n = np.maximum(phi, 1e-12), 0.0, 0
    for fold, fold_count, score, score_count in parts:
        tokens, rows = fold_count.sum(), phi[:, fold]
        mixture = np.full(len(phi), tokens / len(phi))
        for _ in range(STEPS if tokens else 0):
            share = rows * (ALPHA + mixture)[:, None]
            mixture = (share / share.sum(axis=0)) @ fold_count
        mixture = (ALPHA + mixture) / (len(phi) * ALPHA + tokens)
        total += score_count @ np.log(mixture @ phi[:, score])
        n += score_count.sum()
    return np.exp(-total / n)


def run(options, folder, model, warmup):
    """One run of one chain: its file, and the CPU seconds it took."""
    config, out = os.path.join(folder, "run.yaml"), os.path.join(folder, "run.h5")
    with open(config, "w") as file:
        print(f"""model: {{name: lda, topics: {options.topics}, alpha: learned, beta: learned, data: {options.train}
  , {model}}}
sampler: {{name: lda_gibbs}}
run: {{chains: 1, warmup: {warmup}, draws: 1}}
output: {{save_warmup: true, checkpoint_every: 1d}}""", file=file)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([options.emass, "run", config, "--output", out, "--overwrite", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(options, folder):
    """(seconds, perplexity) along a run: the seconds are those of runs that end after so many
    sweeps and score nothing, less those of one that makes a single sweep (which is read too)."""
    def used(n):
        return min(run(options, folder, "store_phi: false", n)[1] for _ in range(2))

    start, sweeps, taken = used(1), [0], [0.0]
    while taken[-1] < options.seconds:
        sweeps.append(max(5, round(1.3 * sweeps[-1] / 5) * 5, sweeps[-1] + 5))
        taken.append(max(taken[-1] + 1e-3, used(sweeps[-1]) - start))
    out, _ = run(options, folder, f"test: {options.test}, test_every: 5", sweeps[-1])
    with h5py.File(out) as file:
        trace = file["warmup_posterior/perplexity"][0]
    curve = [(np.interp(i + 1, sweeps, taken), trace[i]) for i in range(4, len(trace), 5)]
    late = len(sweeps) // 2
    return curve, (sweeps[-1] - sweeps[late]) / (taken[-1] - taken[late])


def theirs(options, parts):
    model = tomotopy.LDAModel(k=options.topics, alpha=0.1, eta=0.01, seed=1)
    n_word = 0
    for entries in lines(options.train):
        n_word = max([n_word] + [w + 1 for w, _ in entries])
        if entries:
            model.add_doc([str(w) for w, c in entries for _ in range(c)])
    model.train(0)
    column = np.array([int(w) for w in model.used_vocabs])
    n_word = max([n_word] + [1 + w.max() for p in parts for w in (p[0], p[2]) if len(w)])
    used, sweeps, curve, due = 0.0, 0, [], 0.25
    while used < options.seconds:
        start = time.process_time()
        model.train(1, workers=1)
        used += time.process_time() - start
        sweeps += 1
        if used >= due or used >= options.seconds:
            phi = np.zeros((options.topics, n_word))
            phi[:, column] = [model.get_topic_word_dist(k) for k in range(options.topics)]
            curve.append((used, perplexity(phi, parts)))
            due = max(1.9 * due, used)
    return curve, sweeps / used


def at(curve, second):
    """The first score from this second on: what had been reached by then is no better."""
    return next((p for s, p in curve if s >= second), curve[-1][1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("emass")
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    options.train, options.test = os.path.abspath(options.train), os.path.abspath(options.test)
    options.emass = os.path.abspath(options.emass)
    tokens = sum(c for entries in lines(options.train) for _, c in entries) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        mine, my_rate = ours(options, folder)
    other, other_rate = theirs(options, list(split(lines(options.test))))
    print(f"{options.topics} topics, {tokens:.2f} M tokens; perplexity after CPU seconds of one thread")
    print("seconds    emass  tomotopy")
    second = 0.5
    while second <= options.seconds:
        print(f"{second:7.2f}  {at(mine, second):7.1f}   {at(other, second):7.1f}")
        second *= 2
    print(f"M tokens/s {my_rate * tokens:6.1f}   {other_rate * tokens:7.1f}")


if __name__ == "__main__":
    main()
