"""What a paper leaves unsaid of 004, Fig. 4, tried out in plain numpy: four layers of 100 ReLUs on MNIST, D = 5,
by Euler's method and by the splitting, with the gradient where the paper has it and where
its first author's program of a year later has it (github.com/ChunyuanLI/pSGLD), from several starts and with several sizes of minibatches.
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np

DEPTH, UNITS, CLASSES, D = 4, 100, 10, 5.0
SEEDS = 3
TRIED = [  # start, h, minibatch, epochs
    ("Glorot", 1e-4, 100, 3),
    ("Glorot", 2e-4, 100, 3),
    ("Glorot", 5e-4, 100, 2),
    ("prior", 1e-4, 100, 1),
    ("Glorot", 1e-4, 20, 2),
]
FORMS = {"e": "E, as printed", "s": "S, as printed", "e-old": "E, gradient before the step", "s-old": "S, the same"}


def mnist(folder):
    def read(name, header):
        return np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8, offset=header)

    def part(name):
        images = read(f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
        return images.astype(np.float32) / 255, read(f"{name}-labels-idx1-ubyte.gz", 8)

    return *part("train"), *part("t10k")


class Network:
    """Weights and biases of all layers in one vector, and its gradient in another."""

    def __init__(self, random, start, inputs):
        sizes = [inputs, *[UNITS] * DEPTH, CLASSES]
        self.shapes = list(zip(sizes[:-1], sizes[1:]))
        n = sum((a + 1) * b for a, b in self.shapes)
        self.theta, self.slope = np.empty(n, np.float32), np.empty(n, np.float32)
        self.weights, self.slopes = self.layers(self.theta), self.layers(self.slope)
        for w, b in self.weights:
            if start == "prior":
                w[:], b[:] = random.standard_normal(w.shape), random.standard_normal(b.shape)
            else:  # biases, too, as there
                r = np.sqrt(6 / (sum(w.shape) + 1))
                w[:], b[:] = random.uniform(-r, r, w.shape), random.uniform(-r, r, b.shape)

    def layers(self, flat):
        ends = np.cumsum([(a + 1) * b for a, b in self.shapes])
        parts = [flat[end - (a + 1) * b : end] for end, (a, b) in zip(ends, self.shapes)]
        return [(x[: a * b].reshape(a, b), x[a * b :]) for x, (a, b) in zip(parts, self.shapes)]

    def forward(self, x):
        values = [x]
        for i, (w, b) in enumerate(self.weights):
            z = values[-1] @ w + b
            values.append(np.maximum(z, 0) if i < DEPTH else z)
        return values

    def gradient(self, x, y, n):
        """Of -log p, estimated from some of n cases."""
        values = self.forward(x)
        p = np.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
        d = p / p.sum(axis=1, keepdims=True)
        d[np.arange(len(y)), y] -= 1
        d *= np.float32(n / len(y))
        for i in reversed(range(len(self.weights))):
            self.slopes[i][0][:], self.slopes[i][1][:] = values[i].T @ d, d.sum(axis=0)
            d = (d @ self.weights[i][0].T) * (values[i] > 0)
        return self.slope + self.theta


def step(form, theta, p, xi, gradient, h, noise):
    """Moves theta; returns p and xi. EQUATIONS 10, and the same with the gradient at the old theta."""
    old = gradient() if form.endswith("-old") else None
    if form.startswith("e"):
        theta += h * p
        if old is not None:  # explicit in all three
            return p - h * old - h * xi * p + noise, xi + h * (p * p - 1)
        p = p - h * gradient() - h * xi * p + noise
        return p, xi + h * (p * p - 1)
    theta += h / 2 * p
    xi = xi + h / 2 * (p * p - 1)
    shrink = np.exp(-h / 2 * xi)
    p = shrink * (shrink * p - h * (gradient() if old is None else old) + noise)
    theta += h / 2 * p
    return p, xi + h / 2 * (p * p - 1)


def run(form, start, h, batch, epochs, seed, data):
    """Accuracy on the test after the last epoch, or None where it diverged."""
    x, y, test_x, test_y = data
    random = np.random.default_rng(seed)
    network = Network(random, start, x.shape[1])
    p = random.standard_normal(network.theta.size, dtype=np.float32)
    xi, h = np.full_like(p, D), np.float32(h)
    for _ in range(epochs):
        order = random.permutation(len(y))
        for rows in np.split(order, range(batch, len(y), batch)):
            noise = np.float32(np.sqrt(2 * D * h)) * random.standard_normal(p.size, dtype=np.float32)
            p, xi = step(form, network.theta, p, xi, lambda: network.gradient(x[rows], y[rows], len(y)), h, noise)
        if not np.isfinite(network.theta).all():
            return None
    return float(np.mean(network.forward(test_x)[-1].argmax(axis=1) == test_y))


def named(tried, form):
    return " ".join(map(str, (*tried, form)))


def measure(folder):
    """All of them, once, where the data are: five minutes of processor."""
    images = Path(os.environ.get("EMASS_DATA", "/nowhere"), "mnist")
    if not (images / "train-images-idx3-ubyte.gz").exists():
        return
    kept = folder / "euler.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    data = None
    for tried in TRIED:
        for form in FORMS:
            name = named(tried, form)
            if name not in found:
                data = data or mnist(images)
                with np.errstate(all="ignore"):
                    found[name] = [run(form, *tried, seed, data) for seed in range(SEEDS)]
                kept.write_text(json.dumps(found))


def rows(folder):
    """[*tried, what became of each form]; nothing where it was not measured."""
    kept = folder / "euler.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    out = []
    for tried in TRIED:
        cells = [found.get(named(tried, form)) for form in FORMS]
        if any(cells):
            out.append([tried[0], f"{tried[1]:g}", *tried[2:], *map(outcome, cells)])
    return out


def failures(folder):
    """In a sentence: how many chains of each form diverged, and what the best of the splitting came to beside them."""
    kept = folder / "euler.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    lost = {form: 0 for form in FORMS}
    beside = []
    for tried in TRIED:
        cells = {form: found.get(named(tried, form), []) for form in FORMS}
        for form, accuracies in cells.items():
            lost[form] += accuracies.count(None)
        if any(None in accuracies for accuracies in cells.values()):
            beside += [a for form in ("s", "s-old") for a in cells[form] if a is not None]
    words = "Diverged: " + ", ".join(f"{n} of {FORMS[form]}" for form, n in lost.items())
    return words + (
        f"; where some did, the best of the splitting's chains is at {100 * max(beside):.1f} %." if beside else "."
    )


def outcome(accuracies):
    if not accuracies:
        return None
    ended = [100 * a for a in accuracies if a is not None]
    lost = len(accuracies) - len(ended)
    words = [f"{np.mean(ended):.1f} ({min(ended):.1f} to {max(ended):.1f})"] if ended else []
    return "; ".join(words + ([f"{lost} of {len(accuracies)} diverged"] if lost else []))
