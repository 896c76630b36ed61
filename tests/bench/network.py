#!/usr/bin/env python3
"""SGHMC steps a second of networks on MNIST, beside JAX, in turns on one core.

    tests/bench/network.py EMASS [--seconds 4] [--rounds 3] [--only NAME]...

A step is one of SGHMC (Euler) on a minibatch of 100 in single precision, of every chain: a gradient, the
noise of every weight, and the update. JAX is what a user would write instead: the gradient by jax.grad,
chains by vmap, a hundred steps in one jitted scan, the minibatch gathered and the noise drawn within it.
JSON lines: steps of the block of chains a second, the medians over rounds taken in turns, their ratio, and
the share that emass has of the sgemm that numpy does on that core (products alone are counted).
"""
import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp
import numpy as np

BATCH, STEP_SIZE, FRICTION = 100, 1e-5, 10
LENET = [("conv", 32), ("pool", 2), ("conv", 64), ("pool", 2), ("dense", 200), ("dense", 200)]
CASES = {"784-100-100-10": ([("dense", 100)] * 2, 1), "784-100-100-10, 8 chains": ([("dense", 100)] * 2, 8),
         "784-400-400-10": ([("dense", 400)] * 2, 1), "LeNet": (LENET, 1)}


def shapes(layers):
    """(kind, weight shape) of every layer, the output included, and multiplications of an observation."""
    side, channels, found, work = 28, 1, [], 0
    for kind, n in [*layers, ("dense", 10)]:
        if kind == "conv":
            found.append((kind, (5, 5, channels, n)))
            side, work = side - 4, work + (side - 4)**2 * 25 * channels * n
            channels = n
        elif kind == "pool":
            found.append((kind, None))
            side //= n
        else:
            size = side * side * channels
            found.append((kind, (size, n)))
            side, channels, work = 1, n, work + size * n
    first = found[0][1]
    inner = first[0] * first[1] if len(first) == 2 else 24 * 24 * 25 * first[3]
    return found, 3 * work - inner  # forwards, by weights, and by inputs but for the first


# ---- JAX ----

def forward(found, theta, x):
    for i, ((kind, _), layer) in enumerate(zip(found, theta)):
        if kind == "pool":
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            continue
        weight, bias = layer
        if kind == "conv":
            x = jax.lax.conv_general_dilated(x, weight, (1, 1), "VALID",
                                             dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
        else:
            x = x.reshape(len(x), -1) @ weight + bias
        x = jax.nn.relu(x) if i < len(found) - 1 else x
    return x


def jax_steps(found, n_chain, images, labels):
    """A function of the state that does 100 steps, and the state."""
    n = len(images)
    convolves = found[0][0] == "conv"
    data = jnp.asarray(images[..., None] if convolves else images.reshape(n, -1))
    truth = jnp.asarray(labels)

    def density(theta, row):
        x = data[row].astype(jnp.float32) / 255
        p = jax.nn.log_softmax(forward(found, theta, x))
        prior = sum(jnp.sum(a * a) for a in jax.tree_util.tree_leaves(theta)) / 2
        return jnp.take_along_axis(p, truth[row][:, None], 1).sum() * (n / BATCH) - prior

    def step(state, key):
        theta, momentum = state
        rows, noise = jax.random.split(key)
        gradient = jax.grad(density)(theta, jax.random.randint(rows, (BATCH,), 0, n))
        leaves, tree = jax.tree_util.tree_flatten(momentum)
        keys = jax.random.split(noise, len(leaves))
        z = jax.tree_util.tree_unflatten(tree, [jax.random.normal(k, a.shape) for k, a in zip(keys, leaves)])
        scale = (2 * STEP_SIZE * FRICTION)**0.5
        momentum = jax.tree_util.tree_map(
            lambda p, g, e: p * (1 - STEP_SIZE * FRICTION) + STEP_SIZE * g + scale * e, momentum, gradient, z)
        theta = jax.tree_util.tree_map(lambda t, p: t + STEP_SIZE * p, theta, momentum)
        return (theta, momentum), None

    def hundred(state, key):
        return jax.lax.scan(step, state, jax.random.split(key, 100))[0]

    def start(key):
        theta = [None if s is None else
                 (jax.random.normal(k, s) * (2 / np.prod(s[:-1]))**0.5, jnp.zeros(s[-1]))
                 for k, (_, s) in zip(jax.random.split(key, len(found)), found)]
        return theta, jax.tree_util.tree_map(jnp.zeros_like, theta)

    keys = jax.random.split(jax.random.PRNGKey(0), n_chain)
    state = jax.vmap(start)(keys)
    many = jax.jit(jax.vmap(hundred))
    return lambda s: many(s, keys), state


def time_jax(run, state, seconds):
    """Steps a second, once compiled."""
    state = jax.block_until_ready(run(state))
    start, n = time.perf_counter(), 0
    while n == 0 or time.perf_counter() - start < seconds:
        state = jax.block_until_ready(run(state))
        n += 100
    return n / (time.perf_counter() - start)


# ---- emass ----

def config(layers, n_chain, data):
    names = {"dense": "{{dense: {}}}", "conv": "{{convolution: {}, kernel: 5}}", "pool": "{{pool: {}}}"}
    listed = ", ".join(names[kind].format(n) for kind, n in layers)
    return (f"model: {{name: network, data: {data}/train, layers: [{listed}], precision: single, scored: 1}}\n"
            f"sampler: {{name: sghmc, integrator: euler, step_size: {STEP_SIZE}, friction: {FRICTION}, "
            f"minibatch: {BATCH}, leapfrog_steps: 1, replacement: true}}\n"
            f"mass: {{estimator: none}}\nrun: {{chains: {n_chain}, warmup: 0, draws: 2, thin: 1}}\n")


def emass_seconds(emass, path, thin):
    start = time.perf_counter()
    subprocess.run([emass, "run", path, "--quiet", "--overwrite", "--set", f"run.thin={thin}"], check=True,
                   cwd=os.path.dirname(path), stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def time_emass(emass, path, seconds):
    """Steps a second: what more steps take more."""
    thin, short = 50, emass_seconds(emass, path, 1)
    while True:
        took = emass_seconds(emass, path, thin) - short
        if took > seconds / 2:
            return 2 * (thin - 1) / took
        thin = int(thin * min(10, 1.2 * seconds / max(took, seconds / 20)))


# ---- all of it ----

def read(path):
    raw = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def time_product():
    """GFLOP/s of a product of 1024 x 1024 numbers of 32 bits."""
    a = np.random.default_rng(0).random((1024, 1024), np.float32)
    best = 0
    for _ in range(8):
        start = time.perf_counter()
        a @ a
        best = max(best, 2 * 1024**3 / (time.perf_counter() - start) / 1e9)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("emass")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    data = pathlib.Path(os.environ.get("EMASS_DATA", "data")).resolve() / "mnist"
    images, labels = (read(data / f"train-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
    peak = time_product()
    print(json.dumps({"bench": "network", "sgemm_gflops": round(peak, 1), "jax": jax.__version__}))
    for name, (layers, n_chain) in CASES.items():
        if options.only and name not in options.only:
            continue
        found, work = shapes(layers)
        run, state = jax_steps(found, n_chain, images, labels)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "network.yaml")
            pathlib.Path(path).write_text(config(layers, n_chain, data))
            rounds = [(time_jax(run, state, options.seconds),
                       time_emass(os.path.abspath(options.emass), path, options.seconds))
                      for _ in range(options.rounds)]
        theirs, ours = (statistics.median(r[i] for r in rounds) for i in (0, 1))
        ratio = statistics.median(r[1] / r[0] for r in rounds)
        share = ours * n_chain * BATCH * 2 * work / 1e9 / peak
        print(json.dumps({"bench": "network", "case": name, "mflop_per_chain_step": round(2e-6 * BATCH * work, 1),
                          "jax_steps_per_s": round(theirs, 1), "emass_steps_per_s": round(ours, 1),
                          "ratio": round(ratio, 2), "share_of_sgemm": round(share, 3)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
