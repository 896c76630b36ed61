"""Held-out perplexity against CPU seconds of one thread: lda by lda_gibbs and by the stochastic
gradients of sgrld, beside tomotopy (collapsed Gibbs), gensim and scikit-learn (online variational
Bayes).

All are scored from their laws of words alone, on the same fifth of the tokens of the same test
documents, by the definition of src/topics/lda_held_out.h; without TEST these are every 50th document
of those of 20 tokens or more, and the others are learned from. Seconds are of sampling: reading and
scoring are left out. A point of ours is a run that ends there, whose phi is averaged over its draws:
of sgrld the second half; of lda_gibbs, whose warmup takes in documents during 64 iterations at most,
half of what comes after those, and one iteration at least. The peers' phi is of the state they are
in. All go on in turns, whoever has had the fewest seconds next: what else the machine does meanwhile
meets them all.
"""
import argparse
import json
import logging
import os
import resource
import subprocess
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import gensim
import h5py
import numpy as np
import scipy.sparse
import sklearn.decomposition
import tomotopy

from corpora import lines, without_test

ALPHA, STEPS, SCORED = 0.1, 100, 5
LOW = np.uint64(0xFFFFFFFF)
GIBBS = ("alpha: learned, beta: learned", "{name: lda_gibbs}", 16, 64)
STOCHASTIC = (
    "alpha: 0.1, beta: 0.05, parameters: expanded_mean, warm_start: true, local_discard: 0,"
    " local_sweeps: 1",
    "{name: sgrld, metric: expanded_mean, minibatch: 500, leapfrog_steps: 1, step_size: 0.02,"
    " minibatch_order: epoch, halve_at: [10, 20, 40, 80]}",
    64,
    0,
)


# ---- documents, and the score ----


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


def split(documents, most):
    """The parts of `most` documents, evenly chosen."""
    documents = list(documents)
    chosen = np.unique(np.linspace(0, len(documents) - 1, most).astype(int))
    for d in map(int, chosen):
        word = np.repeat([w for w, _ in documents[d]], [c for _, c in documents[d]]).astype(int)
        scored = is_scored(d, len(word))
        yield (*np.unique(word[~scored], return_counts=True),
               *np.unique(word[scored], return_counts=True))


def perplexity(phi, parts):
    phi, total, n = np.maximum(phi, 1e-12).T.astype(float).copy(), 0.0, 0
    n_topic = phi.shape[1]
    for fold, fold_count, score, score_count in parts:
        tokens, rows = fold_count.sum(), phi[fold]
        weight = np.full(n_topic, ALPHA + tokens / n_topic)
        for _ in range(STEPS if tokens else 0):
            weight = ALPHA + weight * ((fold_count / (rows @ weight)) @ rows)
        total += score_count @ np.log(phi[score] @ weight / weight.sum())
        n += score_count.sum()
    return float(np.exp(-total / n))


# ---- ours ----


def run(options, folder, kind, warmup, draws):
    """One run of one chain: its phi, and the CPU seconds it took."""
    model, sampler, _, _ = kind
    config, out = os.path.join(folder, "run.yaml"), os.path.join(folder, "run.h5")
    with open(config, "w") as file:
        print(f"""model: {{name: lda, topics: {options.topics}, data: {options.train}, {model}}}
sampler: {sampler}
mass: {{estimator: none}}
run: {{chains: 1, warmup: {warmup}, draws: {draws}}}
output: {{checkpoint_every: 1d}}""", file=file)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([options.emass, "run", config, "--output", out, "--overwrite", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with h5py.File(out) as file:
        phi = file["averages/phi"][0, 0]
    return phi, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Curve:
    """[(seconds, perplexity)] of one method, which begins with `used` none, and iterations or
    passes a second."""

    def __init__(self, options, parts):
        self.most, self.parts = options.seconds, parts
        self.used, self.points, self.rate = 0.0, [], 0.0
        self.due = 0.25

    def is_over(self):
        return self.used >= self.most

    def add(self, seconds, phi):
        self.used = seconds
        self.points.append((seconds, perplexity(phi, self.parts)))

    def spent(self, start, phi):
        """Of a peer: scored at seconds that grow by a factor."""
        self.used += time.process_time() - start
        if self.used >= self.due or self.is_over():
            self.add(self.used, phi())
            self.due = max(1.6 * self.due, self.used)


def start_of(options, folder, kind):
    """The seconds of a run without its iterations, and of one: of three, the least."""
    one, two = (min(run(options, folder, kind, 0, n)[1] for _ in range(3)) for n in (1, 2))
    return max(2 * one - two, 0), max(two - one, 1e-3)


def ours(options, folder, kind, curve, passes):
    """Seconds are those of a run, of two the least, less those of its start; `passes` through the
    corpus an iteration makes."""
    start, pass_seconds = start_of(options, folder, kind)
    curve.rate = passes / pass_seconds
    _, _, n, before = kind
    most_twice, whole = 4 * n, None
    while not curve.is_over():
        draws = max((n - before) // 2, 1)
        tries = [run(options, folder, kind, n - draws, draws)
                 for _ in range(1 if n > most_twice else 2)]
        seconds = max(min(used for _, used in tries) - start, 1e-3)
        curve.add(seconds, tries[0][0])
        if whole:  # all that came after this point were iterations over all documents
            curve.rate = passes * (n - whole[0]) / (seconds - whole[1])
        elif n > before:
            whole = n, seconds
        n = round(n * min(1.3, 1.05 * options.seconds / seconds))
        yield


# ---- theirs ----


def by_tomotopy(options, train, n_word, curve):
    model = tomotopy.LDAModel(k=options.topics, alpha=0.1, eta=0.01, seed=1)
    for entries in train:
        if entries:
            model.add_doc([str(w) for w, c in entries for _ in range(c)])
    model.train(0, workers=1)
    column = np.array([int(w) for w in model.used_vocabs])

    def phi():
        out = np.zeros((options.topics, n_word))
        out[:, column] = [model.get_topic_word_dist(k) for k in range(options.topics)]
        return out

    sweeps = 0
    while not curve.is_over():
        start = time.process_time()
        model.train(1, workers=1)
        sweeps += 1
        curve.spent(start, phi)
        curve.rate = sweeps / curve.used
        yield


def by_gensim(options, train, n_word, curve):
    logging.getLogger("gensim").setLevel(logging.ERROR)
    train = [entries for entries in train if entries]
    model = gensim.models.LdaModel(
        num_topics=options.topics, id2word={v: str(v) for v in range(n_word)}, alpha=0.1, eta=0.01,
        iterations=20, gamma_threshold=0.01, decay=0.5, offset=1, eval_every=None, random_state=1)
    seen, chunk = 0, 500
    order = np.random.default_rng(1).permutation(len(train))
    while not curve.is_over():
        some = [train[i] for i in np.take(order, range(seen, seen + chunk), mode="wrap")]
        start = time.process_time()
        model.update(some, chunksize=chunk, passes=1)
        seen += chunk
        curve.spent(start, model.get_topics)
        curve.rate = seen / len(train) / curve.used
        yield


def by_sklearn(options, train, n_word, curve):
    model = sklearn.decomposition.LatentDirichletAllocation(
        options.topics, doc_topic_prior=0.1, topic_word_prior=0.01, learning_decay=0.7,
        learning_offset=10, max_doc_update_iter=20, total_samples=len(train), random_state=1)
    seen, chunk = 0, 500
    order = np.random.default_rng(1).permutation(len(train))
    start = np.cumsum([0] + [len(entries) for entries in train])
    word, count = np.array([e for entries in train for e in entries]).T
    table = scipy.sparse.csr_matrix((count, word, start), shape=(len(train), n_word), dtype=float)

    def phi():
        return model.components_ / model.components_.sum(axis=1, keepdims=True)

    while not curve.is_over():
        some = np.take(order, range(seen, seen + chunk), mode="wrap")
        begin = time.process_time()
        model.partial_fit(table[some])
        seen += chunk
        curve.spent(begin, phi)
        curve.rate = seen / len(train) / curve.used
        yield


# ---- what comes out ----


def at(curve, second):
    """By then: between the points, straight over the logarithm of seconds."""
    seconds, scores = zip(*curve)
    if second < seconds[0]:
        return None
    return float(np.interp(np.log(second), np.log(seconds), scores))


def draw(curves, title, path):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "topics"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    for name, curve in curves.items():
        axes.plot(*zip(*curve), marker=".", lw=1, label=name)
    low = min(p for curve in curves.values() for _, p in curve)
    axes.set(xscale="log", xlabel="CPU seconds of one thread", ylabel="held-out perplexity",
             title=title, ylim=(0.98 * low, 1.35 * low))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def table(curves, rates, tokens, seconds):
    print("| seconds | " + " | ".join(curves) + " |")
    print("| --: |" + " --: |" * len(curves))
    for second in (s for s in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if s <= seconds):
        scores = [at(curve, second) for curve in curves.values()]
        print(f"| {second:g} | " + " | ".join(f"{s:.0f}" if s else "-" for s in scores) + " |")
    best = [min(p for _, p in curve) for curve in curves.values()]
    print("| best | " + " | ".join(f"{s:.0f}" for s in best) + " |")
    print("| M tokens/s | " + " | ".join(f"{rates[name] * tokens:.1f}" for name in curves) + " |")


PEERS = {"tomotopy": by_tomotopy, "gensim": by_gensim, "scikit-learn": by_sklearn}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("emass")
    parser.add_argument("train")
    parser.add_argument("test", nargs="?")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--documents", type=int, default=2000, help="test documents that are scored")
    parser.add_argument("--only", nargs="*", choices=["lda_gibbs", "sgrld", *PEERS],
                        default=["lda_gibbs", "sgrld", *PEERS])
    parser.add_argument("--json")
    parser.add_argument("--picture")
    options = parser.parse_args()
    options.emass, options.train = os.path.abspath(options.emass), os.path.abspath(options.train)
    with tempfile.TemporaryDirectory() as folder:
        if not options.test:
            options.train, options.test = without_test(options.train, folder)
        compare(options, folder)


def compare(options, folder):
    train, test = list(lines(options.train)), list(lines(options.test))
    tokens = sum(c for entries in train for _, c in entries) / 1e6
    n_word = 1 + max(w for entries in train + test for w, _ in entries)
    parts = list(split(test, options.documents))
    found = {name: Curve(options, parts) for name in options.only}
    going = {}
    for name, curve in found.items():
        if name in PEERS:
            going[name] = PEERS[name](options, train, n_word, curve)
        else:
            kind, passes = (GIBBS, 1) if name == "lda_gibbs" else (STOCHASTIC, 500 / len(train))
            going[name] = ours(options, folder, kind, curve, passes)
    while going:
        name = min(going, key=lambda name: found[name].used)
        if next(going[name], going) is going:
            del going[name]
    curves = {name: curve.points for name, curve in found.items()}
    rates = {name: curve.rate for name, curve in found.items()}
    title = f"{options.topics} topics, {tokens:.2f} M tokens of {len(train)} documents"
    print(f"{title}; {len(parts)} test documents scored; perplexity after CPU seconds of one thread")
    table(curves, rates, tokens, options.seconds)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"title": title, "curves": curves, "rates": rates}, file)
    if options.picture:
        draw(curves, title, options.picture)


if __name__ == "__main__":
    main()
