#!/usr/bin/env python3
"""Seconds a gradient on one core, of one model in PyMC and of the same in JAX: emass beside nutpie, which
compile it alike.

    build/python-venv/bin/python tests/bench/pymc_gradients.py EMASS [--draws 2000] [--rows 1000]

Prints a line of JSON for each: the seconds of the compiled function alone, and those of a whole run divided by
its gradients, warmup included; of processor time. Runs alternate, and the least of three counts.
"""
import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

arguments = argparse.ArgumentParser()
arguments.add_argument("emass")
arguments.add_argument("--draws", type=int, default=2000)
arguments.add_argument("--rows", type=int, default=1000)
asked = arguments.parse_args()
os.environ["EMASS"] = os.path.abspath(asked.emass)
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "analysis"))
warnings.simplefilter("ignore")

import ctypes  # noqa: E402

import numpy as np  # noqa: E402
import nutpie  # noqa: E402
import pymc as pm  # noqa: E402

import emass  # noqa: E402
from emass import _library, sampling  # noqa: E402
from emass.data import Files  # noqa: E402

CHAINS = 4


def hierarchy(rows):
    """Groups of observations with means of their own."""
    random = np.random.default_rng(1)
    group = random.integers(0, 50, rows)
    x = random.normal(size=rows)
    y = random.normal(size=50)[group] + 0.5 * x + random.normal(size=rows)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 2)
        z = pm.Normal("z", 0, 1, shape=50)
        slope = pm.Normal("slope", 0, 1)
        sigma = pm.HalfNormal("sigma", 2)
        pm.Normal("y", (mu + tau * z)[group] + slope * x, sigma, observed=y)
    return model


def in_jax(rows):
    """The same, for an array of 54 free numbers, and nutpie's model of the same jitted function."""
    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(1)
    group = jnp.asarray(random.integers(0, 50, rows))
    x = jnp.asarray(random.normal(size=rows))
    y = jnp.asarray(random.normal(size=50)[np.asarray(group)] + 0.5 * np.asarray(x) + random.normal(size=rows))

    def log_density(theta):
        mu, tau, slope, sigma, z = theta[0], jnp.exp(theta[1]), theta[2], jnp.exp(theta[3]), theta[4:]
        residual = (y - (mu + tau * z)[group] - slope * x) / sigma
        prior = -((mu / 5) ** 2 + (tau / 2) ** 2 + slope**2 + (sigma / 2) ** 2 + jnp.sum(z**2)) / 2
        return prior + theta[1] + theta[3] - jnp.sum(residual**2) / 2 - rows * theta[3]

    jitted = jax.jit(jax.value_and_grad(log_density))

    def value_and_gradient(theta):
        value, slope = jitted(theta)
        return float(value), np.asarray(slope, dtype="float64", order="C")

    return log_density, nutpie.compiled_pyfunc.from_pyfunc(
        54, lambda: value_and_gradient, lambda *_: lambda theta, **_: {"theta": theta}, [np.dtype("float64")], [(54,)], ["theta"])


def seconds_of(call, rounds=2000):
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(rounds):
            call()
        best = min(best, (time.perf_counter() - start) / rounds)
    return best


def of_function(made, compiled):
    """Each by its address, through ctypes, whose own time is the same."""
    x, slope, value = np.full(made.size, 0.1), np.empty(made.size), ctypes.c_double()
    pointers = x.ctypes.data, slope.ctypes.data, ctypes.addressof(value)
    ours = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(made.gradient)
    theirs = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)(compiled.compiled_logp_func.address)
    data = compiled.user_data.ctypes.data
    return (
        seconds_of(lambda: ours(None, pointers[0], pointers[2], pointers[1])),
        seconds_of(lambda: theirs(made.size, pointers[0], pointers[1], pointers[2], data)),
    )


def seconds_a_step(sampler, draws_of):
    """Of processor time, for other jobs have their share of the machine."""
    start = time.process_time()
    draws = sampler()
    seconds = time.process_time() - start
    draws = draws_of(draws)
    return seconds / sum(float(getattr(draws, group).n_steps.sum()) for group in ("sample_stats", "warmup_sample_stats"))


def of_emass(model):
    """The run, into its file, which is read behind it."""
    job = sampling.Job({"model": {"name": model._made().name}, "run": {"chains": CHAINS, "draws": asked.draws, "warmup": 500},
                        "sampler": {"name": "nuts"}, "output": {"save_warmup": True}}, Files(), None)
    with tempfile.TemporaryDirectory() as folder, _library.Context() as context:
        context.add(model._made())
        config = job.text(Path(folder) / "draws.h5")
        return seconds_a_step(lambda: context.run(config, "config", _library.NEW, lambda at: None)[0], emass.read)


def of_nutpie(compiled):
    return seconds_a_step(lambda: nutpie.sample(compiled, draws=asked.draws, tune=500, chains=CHAINS, cores=1, seed=1,
                                                progress_bar=False, save_warmup=True), lambda draws: draws)


def say(name, model, compiled, **more):
    runs = [(of_emass(model), of_nutpie(compiled)) for _ in range(3)]
    emass_run, nutpie_run = (min(column) for column in zip(*runs))
    print(json.dumps({"benchmark": name, "rows": asked.rows, "draws": asked.draws, **more, "run_emass": emass_run,
                      "run_nutpie": nutpie_run, "run_ratio": emass_run / nutpie_run}), flush=True)


def main():
    program = hierarchy(asked.rows)
    model = emass.Model.from_pymc(program)
    compiled = nutpie.compile_pymc_model(program)
    ours, theirs = of_function(model._made(), compiled)
    say("pymc_gradients", model, compiled, function_emass=ours, function_nutpie=theirs, function_ratio=ours / theirs)
    import jax

    jax.config.update("jax_enable_x64", True)
    log_density, compiled = in_jax(asked.rows)
    say("jax_gradients", emass.Model.from_jax(log_density, np.full(54, 0.1)), compiled)


main()
