#!/usr/bin/env python3
"""Networks beside a reference in numpy, and what a stochastic sampler makes of one beside HMC. TAP; $1: the
build.

The reference is a network of a convolution, a pool and dense layers, written out place by place: densities,
predictions and their averages are compared at the draws of a short run. The other network is a regression
on a sine: its function at five points, and its square, have the same means by SGHMC on minibatches as by
HMC, within Monte Carlo standard errors of both; noise of half the size does not pass for it, nor do
minibatches that bring too much. That takes ten seconds, and is asked for by a second argument, `hmc`
(slow/network.sh).
"""
import os
import struct
import sys
import tempfile

import lib
from lib import report

lib.needs_packages("networks beside numpy")

import h5py
import numpy as np

SIDE, N_CLASS = 6, 3


def idx(path, values):
    head = bytes([0, 0, 8, values.ndim]) + b"".join(struct.pack(">I", n) for n in values.shape)
    with open(path, "wb") as out:
        out.write(head + values.astype(np.uint8).tobytes())


def images(name, n, draw):
    label = draw.integers(0, N_CLASS, n)
    image = draw.integers(0, 100, (n, SIDE, SIDE))
    for i, k in enumerate(label):
        image[i, 2 * k:2 * k + 2] += 120
    idx(f"{name}-images-idx3-ubyte", image)
    idx(f"{name}-labels-idx1-ubyte", label)
    return image[..., None] / 255, label


def run(name, text, *arguments):
    with open(f"{name}.yaml", "w") as out:
        out.write(text)
    done = lib.limited(lib.EMASS, "run", f"{name}.yaml", "--quiet", "--overwrite", *arguments)
    if done.returncode:
        raise SystemExit(done.stderr)
    return h5py.File(f"{name}.h5")


# ---- the reference ----

def convolve(x, weight, bias, pad):
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    side = weight.shape[0]
    height, width = x.shape[1] - side + 1, x.shape[2] - side + 1
    out = np.empty((len(x), height, width, weight.shape[3]))
    for row in range(height):
        for column in range(width):
            out[:, row, column] = np.einsum("nabc,abcd->nd", x[:, row:row + side, column:column + side],
                                            weight) + bias
    return out


def outputs(theta, x):
    """Convolution of 4, 3 x 3, same, ReLU; pool of 2; dense 5, tanh; softmax. And the squares of weights."""
    at, squares = 0, []

    def take(*shape):
        nonlocal at
        n = int(np.prod(shape))
        at += n
        return theta[at - n:at].reshape(shape)

    def layer(*shape):
        weight, bias = take(*shape), take(shape[-1])
        squares.append(np.sum(weight**2) + np.sum(bias**2))
        return weight, bias

    x = np.maximum(convolve(x, *layer(3, 3, 1, 4), 1), 0)
    x = x.reshape(len(x), 3, 2, 3, 2, 4).max(axis=(2, 4)).reshape(len(x), -1)
    weight, bias = layer(36, 5)
    x = np.tanh(x @ weight + bias)
    weight, bias = layer(5, N_CLASS)
    return x @ weight + bias, np.array(squares)


def probabilities(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def compare():
    draw = np.random.default_rng(1)
    x, y = images("train", 200, draw)
    x_test, y_test = images("test", 50, draw)
    file = run("reference", """
model:
  name: network
  data: train
  test: test
  layers: [{convolution: 4, kernel: 3, padding: same}, {pool: 2}, {dense: 5, activation: tanh}]
  prior_scale: 0.5
  probes: 4
  store_weights: true
sampler: {name: hmc, leapfrog_steps: 5, step_size: 0.02}
mass: {estimator: none}
run: {chains: 2, warmup: 5, draws: 8}
output: {save_unconstrained: true}
""")
    theta = file["unconstrained_posterior/theta"][:]
    found = {name: [] for name in ("lp", "log_prior", "test_nll", "train_nll", "function", "test_accuracy")}
    mean = np.zeros((2, len(y_test), N_CLASS))
    for chain in range(2):
        for t in theta[chain]:
            z, squares = outputs(t, x)
            p, p_test = probabilities(z), probabilities(outputs(t, x_test)[0])
            log_prior = -squares.sum() / (2 * 0.5)
            loss = -np.log(p[np.arange(len(y)), y])
            mean[chain] += p_test / theta.shape[1]
            found["lp"].append(log_prior - loss.sum())
            found["log_prior"].append(log_prior)
            found["train_nll"].append(loss.mean())
            found["test_nll"].append(-np.log(p_test[np.arange(len(y_test)), y_test]).mean())
            found["test_accuracy"].append((p_test.argmax(axis=1) == y_test).mean())
            found["function"].append(p_test[np.arange(4) * len(y_test) // 4])
    for name, expected in found.items():
        group = "sample_stats" if name == "lp" else "posterior"
        stored = file[f"{group}/{name}"][:]
        error = np.abs(stored.reshape(np.shape(expected)) - expected) / (1 + np.abs(expected))
        report(error.max() < 1e-10, f"{name} is numpy's", error.max())
    error = np.abs(file["averages/probability"][:, 0] - mean).max()
    report(error < 1e-6, "so are the averages over the draws of a chain", error)
    pooled = mean.mean(axis=0)
    error = np.abs(file["predictions/probability"][:] - pooled).max()
    report(error < 1e-6, "and those over the chains", error)
    scores = {"accuracy": (pooled.argmax(axis=1) == y_test).mean(),
              "nll": -np.log(pooled[np.arange(len(y_test)), y_test]).mean(),
              "brier": ((pooled - np.eye(N_CLASS)[y_test])**2).sum(axis=1).mean()}
    wrong = {name: value for name, value in scores.items()
             if abs(file[f"predictions/{name}"][()] - value) > 1e-10}
    report(not wrong, "and their scores", wrong)
    os.rename("test-labels-idx1-ubyte", "labels")
    done = lib.limited(lib.EMASS, "predict", "reference.h5", "--data", "test", "--output", "new.h5")
    with h5py.File("new.h5") as new:
        error = np.abs(new["predictions/probability"][:].mean(axis=1) - mean).max()
    report(error < 1e-5, "emass predict says the same of the same images, without labels", error, done.stderr)


# ---- beside HMC ----

REGRESSION = """
model:
  {{name: network, data: sine.csv, test: points.csv, layers: [{{dense: 6}}], activation: tanh,
   output: normal, sigma: {sigma}, probes: 5}}
sampler: {sampler}
run: {{chains: 8, warmup: {warmup}, draws: {draws}, thin: {thin}, seed: {seed}}}
mass: {mass}
"""


def moments(name, **options):
    """Mean and its squared standard error of f and of f^2 at the five points: over chains, which are
    independent of one another."""
    file = run(name, REGRESSION.format(**options))
    f = file["posterior/function"][:]
    by_chain = np.concatenate([f.mean(axis=1), (f**2).mean(axis=1)], axis=1)
    return by_chain.mean(axis=0), by_chain.var(axis=0, ddof=1) / len(by_chain)


def agree(one, other):
    z = (one[0] - other[0]) / np.sqrt(one[1] + other[1])
    return z


def beside_hmc():
    draw = np.random.default_rng(2)
    x = np.sort(draw.uniform(-2, 2, 60))
    for name, values in (("sine", x), ("points", np.linspace(-2.5, 2.5, 5))):
        table = np.c_[values, np.sin(2 * values) + 0.3 * draw.normal(size=len(values))]
        np.savetxt(f"{name}.csv", table, delimiter=",", header="x,y", comments="")
    hmc = {"sampler": "{name: hmc}", "warmup": 500, "thin": 1, "mass": "{}"}

    def sghmc(step_size, minibatch):
        return {"sampler": f"{{name: sghmc, integrator: aboba, step_size: {step_size}, friction: 3, "
                           f"minibatch: {minibatch}, leapfrog_steps: 10}}",
                "warmup": 500, "draws": 1000, "thin": 8, "mass": "{estimator: none}"}

    # A minibatch of m of N = 60 has a gradient of variance V = N^2 / m (1 - m / N) Var g, where Var g is
    # 0.3^2 / sigma^4 in the units of weights: 86 for half of them, so that step_size V / 2 is a thirtieth
    # of the friction, and can be left out of the injected noise. With 5 and ten times the step it is more
    # than all of that.
    long = moments("long", sigma=0.5, seed=1, draws=1000, **hmc)
    short = moments("short", sigma=0.5, seed=2, **sghmc(0.002, 30))
    half = moments("half", sigma=0.25, seed=1, draws=250, **hmc)
    noisy = moments("noisy", sigma=0.5, seed=2, **sghmc(0.02, 5))
    limit = 5  # 10 numbers, Student's t of about 14 degrees of freedom: one in 500 such tests by chance
    report(np.abs(agree(long, short)).max() < limit, "SGHMC has the predictive band of HMC",
           agree(long, short), long, short)
    report(np.abs(agree(long, half)).max() > limit, "half the noise does not pass for it",
           agree(long, half))
    report(np.abs(agree(long, noisy)).max() > limit, "nor does a minibatch that brings too much",
           agree(long, noisy))


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    if sys.argv[2:] == ["hmc"]:
        beside_hmc()
    else:
        compare()
    os.chdir("/")
lib.finish()
