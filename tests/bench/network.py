#!/usr/bin/env python3
"""SGHMC steps of networks on MNIST a second, beside JAX, in turns on one core; and on two ranks.

    tests/bench/network.py EMASS [--avx2] [--seconds 2] [--rounds 3] [--only NAME]... [--json FILE]

A step is one of SGHMC (Euler) on a minibatch of 100 in single precision, of every chain: a gradient, the
noise of every weight, and the update. An iteration of emass is 25 of them. JAX is what a user would write
instead: the gradient by jax.grad, chains by vmap, 25 steps in one jitted scan, or each by itself where there are
convolutions, which are slow in a scan; the minibatch gathered and the noise drawn within it.

Seconds are those of the processor, of the user and the system, so that others on the machine count for
little; each round takes all programs in turn, and what is said is the median over rounds: steps of the
block of chains a second, ratios within a round, and three shares of a limit, by the OpenBLAS that emass links:
how many steps emass does while the dense products of a step, each of its own shape, are done alone (those of
a convolution by the numbers under its kernel, which are there already); the same with the time in which numpy
moves as many bytes, through as many numbers, as an update of weights and momenta; and the share of the rate of
large products, if all of a step were dense. All take the kernels that they choose for the processor: an
OPENBLAS_CORETYPE or EMASS_SIMD of the environment, which may halve the speed, is put aside. With --avx2 all take
those of a processor without AVX-512. Two ranks are timed by the clock, which only an idle machine
answers for, and by the processor; beside them two programs that know nothing of each other, each on a core of
its own with half of the chains, or with a chain: what they lose, the machine takes. A table; --json writes
its rows as JSON lines.
"""
import argparse
import ctypes
import gzip
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["XLA_FLAGS"] = ("--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" +
                           " --xla_cpu_max_isa=AVX2" * ("--avx2" in sys.argv))
os.environ["OPENBLAS_NUM_THREADS"] = "1"
for variable, avx2 in [("OPENBLAS_CORETYPE", "Haswell"), ("EMASS_SIMD", "avx2")]:
    os.environ.pop(variable, None)
    if "--avx2" in sys.argv:
        os.environ[variable] = avx2
os.environ["OMP_NUM_THREADS"] = "1"
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
CORE = max(CORES)


def pin(core):
    """This process to one core; None: to all it may have."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, CORES if core is None else {core})


pin(CORE)

import jax
import jax.numpy as jnp
import numpy as np

BATCH, STEP_SIZE, FRICTION, SCAN = 100, 1e-5, 10, 25
LENET = [("conv", 32), ("pool", 2), ("conv", 64), ("pool", 2), ("dense", 200), ("dense", 200)]
CASES = {"784-100-100-10": ([("dense", 100)] * 2, 1), "784-100-100-10, 8 chains": ([("dense", 100)] * 2, 8),
         "784-400-400-10": ([("dense", 400)] * 2, 1), "LeNet": (LENET, 1),
         "784-20-10, 64 chains": ([("dense", 20)], 64), "4-8-3, 64 chains": ([("dense", 8)], 64),
         "4-8-3, 1000 chains": ([("dense", 8)], 1000)}
UPDATE_BYTES = 40  # of a weight in a step: it and its momentum, in double precision, are read and written;
                   # its gradient is read, and a copy for the products written, in single precision
TABLE_ROWS, TABLE_COLUMNS = 1000, 4  # of the data of names that begin with 4-
TWO_RANKS = [("784-100-100-10, 8 chains", "784-100-100-10, 8 chains, 4 a rank", []),
             ("784-400-400-10", "784-400-400-10, 1 chain, 2 shards", ["run.shards=2"]),
             ("LeNet", "LeNet, 1 chain, 2 shards", ["run.shards=2"])]


def shapes(layers, side=28, channels=1, n_class=10):
    """(kind, weight shape) of every layer, the output included, and multiplications of an observation."""
    found, work = [], 0
    for kind, n in [*layers, ("dense", n_class)]:
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


def table():
    """Numbers of three classes, whose means differ."""
    random = np.random.default_rng(1)
    labels = np.arange(TABLE_ROWS) % 3
    return (random.normal(size=(TABLE_ROWS, TABLE_COLUMNS)) + labels[:, None]).astype(np.float32), labels


def jax_steps(found, n_chain, images, labels):
    """A function of the state that does SCAN steps, and the state."""
    n = len(images)
    convolves = found[0][0] == "conv"
    data = jnp.asarray(images[..., None] if convolves else images.reshape(n, -1))
    truth = jnp.asarray(labels)
    factor = 1 / 255 if images.dtype == np.uint8 else 1

    def density(theta, row):
        x = data[row].astype(jnp.float32) * factor
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

    def scan(state, key):
        return jax.lax.scan(step, state, jax.random.split(key, SCAN))[0]

    def start(key):
        theta = [None if s is None else
                 (jax.random.normal(k, s) * (2 / np.prod(s[:-1]))**0.5, jnp.zeros(s[-1]))
                 for k, (_, s) in zip(jax.random.split(key, len(found)), found)]
        return theta, jax.tree_util.tree_map(jnp.zeros_like, theta)

    keys = jax.random.split(jax.random.PRNGKey(0), n_chain)
    state = jax.vmap(start)(keys)
    many = jax.jit(jax.vmap(scan))
    one = jax.jit(jax.vmap(lambda s, key: step(s, key)[0]))

    def single_steps(s):
        for _ in range(SCAN):
            s = one(s, keys)
        return s

    return single_steps if convolves else lambda s: many(s, keys), state


def time_jax(run, state, seconds):
    """Steps a second, once compiled."""
    start, n = time.process_time(), 0
    while n == 0 or time.process_time() - start < seconds:
        state = jax.block_until_ready(run(state))
        n += SCAN
    return n / (time.process_time() - start)


# ---- emass ----

def config(layers, n_chain, data):
    names = {"dense": "{{dense: {}}}", "conv": "{{convolution: {}, kernel: 5}}", "pool": "{{pool: {}}}"}
    listed = ", ".join(names[kind].format(n) for kind, n in layers)
    return (f"model: {{name: network, data: {data}, layers: [{listed}], precision: single, scored: 1}}\n"
            f"sampler: {{name: sghmc, integrator: euler, step_size: {STEP_SIZE}, friction: {FRICTION}, "
            f"minibatch: {BATCH}, leapfrog_steps: {SCAN}, replacement: true}}\n"
            f"mass: {{estimator: none}}\nrun: {{chains: {n_chain}, warmup: 0, draws: 2, thin: 1}}\n")


class Emass:
    """Runs of one config, from which steps a second are what more steps take more: of one program, of
    one on some ranks, or of one on each of some cores."""

    def __init__(self, program, path, seconds, ranks=None, settings=(), cores=(CORE,)):
        command = [program, "run", path, "--quiet", "--overwrite"]
        command += ["--ranks", str(ranks)] if ranks else []
        command += [a for setting in settings for a in ("--set", setting)]
        self.commands = [(core, [*command, "--output", f"{path}.{core}.h5"])
                         for core in ([None] if ranks else cores)]
        self.thin = 2
        short = self.run(1)
        while (took := self.run(self.thin)[0] - short[0]) < seconds / 2:
            self.thin = int(self.thin * min(10, 1.2 * seconds / max(took, seconds / 20)))

    def run(self, thin):
        """Seconds of the processor, and by the clock."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        programs = []
        for core, command in self.commands:
            pin(core)
            programs.append(subprocess.Popen([*command, "--set", f"run.thin={thin}"],
                                             stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL))
        pin(CORE)
        if any([program.wait(timeout=300) for program in programs]):
            sys.exit("emass failed")
        clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock

    def rates(self):
        """Steps a second of the processor, and by the clock."""
        short, long = self.run(1), self.run(self.thin)
        return [2 * SCAN * (self.thin - 1) / max(b - a, 1e-9) for a, b in zip(short, long)]


# ---- all of it ----

def read(path):
    raw = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


class Sgemm:
    """Products by the OpenBLAS that a program links, with the kernels that libemass chooses as it is loaded."""

    def __init__(self, program):
        ctypes.CDLL(pathlib.Path(program).with_name("libemass.so.0"))
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        blas = ctypes.CDLL(next(line.split()[2] for line in linked.splitlines() if "blas" in line))
        blas.openblas_get_corename.restype = ctypes.c_char_p
        self.core = blas.openblas_get_corename().decode()
        self.call = blas.cblas_sgemm
        self.call.restype = None

    def product(self, rows, n, k, left=False, right=False):
        """A function that does C = A B, [rows][k] and [k][n], of which one may be stored as its transpose."""
        a, b, c = (np.ones(m, np.float32) for m in (rows * k, k * n, rows * n))
        real, at = ctypes.c_float, ctypes.c_void_p
        sizes = (rows, n, k, real(1), at(a.ctypes.data), rows if left else k, at(b.ctypes.data), k if right else n,
                 real(0), at(c.ctypes.data), n)
        return lambda arrays=(a, b, c): self.call(101, 112 if left else 111, 112 if right else 111, *sizes)

    def step(self, found):
        """All products of a step: forwards, by weights, and by inputs but for the first."""
        products, side = [], 28
        for i, (kind, shape) in enumerate(found):
            side = side - 4 if kind == "conv" else side // 2 if kind == "pool" else 1
            if kind == "pool":
                continue
            rows, n_from, n_to = BATCH * side * side, int(np.prod(shape[:-1])), shape[-1]
            products += [self.product(rows, n_to, n_from), self.product(n_from, n_to, rows, left=True)]
            products += [self.product(rows, n_from, n_to, right=True)] if i > 0 else []
        return products

    @staticmethod
    def rate(products, seconds):
        """Times a second that all of them are done."""
        for product in products:
            product()
        start, n = time.process_time(), 0
        while n < 3 or time.process_time() - start < seconds:
            for product in products:
                product()
            n += 1
        return n / (time.process_time() - start)


def update_rate(n, seconds):
    """Bytes a second that numpy adds n numbers to n others with: what an update of the weights may reach."""
    a, b = np.zeros(n), np.ones(n)
    add = lambda: np.add(a, b, out=a)
    return 24 * n * Sgemm.rate([add], seconds)


def beside_jax(name, options, path, sgemm, images, labels):
    """A row: emass beside JAX."""
    layers, n_chain = CASES[name]
    is_table = name.startswith("4-")
    found, work = shapes(layers, 1, TABLE_COLUMNS, 3) if is_table else shapes(layers)
    images, labels = table() if is_table else (images, labels)
    run, state = jax_steps(found, n_chain, images, labels)
    state = jax.block_until_ready(run(state))
    emass = Emass(options.emass, path, options.seconds)
    products, large = sgemm.step(found), [sgemm.product(1024, 1024, 1024)]
    n_weight = sum(np.prod(shape) + shape[-1] for _, shape in found if shape)
    rounds = [(time_jax(run, state, options.seconds), emass.rates()[0], sgemm.rate(products, options.seconds / 2),
               sgemm.rate(large, options.seconds / 4), update_rate(n_weight, options.seconds / 4))
              for _ in range(options.rounds)]
    theirs, ours = (statistics.median(r[i] for r in rounds) for i in (0, 1))
    flop, moved = n_chain * BATCH * 2 * work, UPDATE_BYTES * n_weight
    return {"network": name, "MFLOP a chain": float(f"{2e-6 * BATCH * work:.3g}"), "JAX": round(theirs, 1),
            "emass": round(ours, 1), "emass / JAX": round(statistics.median(r[1] / r[0] for r in rounds), 2),
            "share of the same products": round(statistics.median(r[1] * n_chain / r[2] for r in rounds), 2),
            "with the update": round(statistics.median(r[1] * n_chain * (1 / r[2] + moved / r[4]) for r in rounds), 2),
            "of the largest rate": round(statistics.median(r[1] * flop / (r[3] * 2 * 1024**3) for r in rounds), 2)}


def two_ranks(name, label, options, path, settings):
    """A row: two ranks, and two programs, beside one rank."""
    n_chain = CASES[name][1]
    one = Emass(options.emass, path, options.seconds, ranks=1)
    two = Emass(options.emass, path, options.seconds, ranks=2, settings=settings)
    both = Emass(options.emass, path, options.seconds, cores=sorted(CORES)[-2:],
                 settings=[f"run.chains={max(1, n_chain // 2)}"])
    rounds = [(one.rates(), two.rates(), both.rates()) for _ in range(options.rounds)]
    gains = {"two ranks / one, by the clock": lambda a, b, c: b[1] / a[1],
             "of the processor": lambda a, b, c: b[0] / a[0],
             "two programs / one, by the clock": lambda a, b, c: c[1] / a[1] * (2 if n_chain == 1 else 1)}
    return {"network": label} | {gain: round(statistics.median(of(*r) for r in rounds), 2)
                                for gain, of in gains.items()}


def print_rows(rows, to):
    """As a table, each as soon as it is there; and as JSON lines."""
    for i, row in enumerate(rows):
        if i == 0:
            print("| " + " | ".join(row) + " |\n|" + " --- |" * len(row))
        print("| " + " | ".join(str(value) for value in row.values()) + " |", flush=True)
        if to:
            print(json.dumps(row), file=to, flush=True)
    print(flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("emass", type=os.path.abspath)
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    parser.add_argument("--json", type=argparse.FileType("w"))
    options = parser.parse_args()
    data = pathlib.Path(os.environ.get("EMASS_DATA", "data")).resolve() / "mnist"
    images, labels = (read(data / f"train-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
    sgemm = Sgemm(options.emass)
    peak = sgemm.rate([sgemm.product(1024, 1024, 1024)], 1) * 2 * 1024**3 / 1e9
    print(f"JAX {jax.__version__}; sgemm of OpenBLAS for {sgemm.core}: {peak:.0f} GFLOP/s of a second of the "
          "processor\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, (layers, n_chain) in CASES.items():
            paths[name] = os.path.join(folder, f"{len(paths)}.yaml")
            pathlib.Path(paths[name]).write_text(
                config(layers, n_chain, f"{folder}/table.csv" if name.startswith("4-") else f"{data}/train"))
        x, classes = table()
        pathlib.Path(folder, "table.csv").write_text("a,b,c,d,class\n" + "".join(
            ",".join(map(repr, map(float, row))) + f",{of}\n" for row, of in zip(x, classes)))
        print_rows((beside_jax(name, options, path, sgemm, images, labels) for name, path in paths.items()
                    if not options.only or name in options.only), options.json)
        if len(CORES) > 1 and (not options.only or "ranks" in options.only):
            print_rows((two_ranks(name, label, options, paths[name], settings)
                        for name, label, settings in TWO_RANKS),
                       options.json)


if __name__ == "__main__":
    sys.exit(main())
