#!/usr/bin/env python3
"""Densities in JAX: pytrees, bounds, outputs, the same draws on ranks, errors. TAP; $1: the build."""
import os
import tempfile
import warnings

import lib
from lib import report, said

lib.needs_front_ends("densities in JAX")
lib.use_package()
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import emass  # noqa: E402

X = np.linspace(-1, 1, 200)
Y = 0.5 + 2 * X + 0.3 * np.sin(40 * X)


def regression(p):
    mean = p["line"]["a"] + p["line"]["b"] * X
    return -jnp.sum((Y - mean) ** 2) / (2 * p["sigma"] ** 2) - len(X) * jnp.log(p["sigma"]) - p["sigma"]


def check():
    start = {"line": {"a": 0.0, "b": 0.0}, "sigma": 1.0}
    model = emass.Model.from_jax(regression, start, bounds={"sigma": (0, None)},
                                 outputs=lambda p: {"ends": p["line"]["a"] + p["line"]["b"] * jnp.array([-1.0, 1.0])})
    report("agree with central differences" in model.check(), "the gradient, in 64 bits")
    draws = model.sample(chains=4, draws=300, progress=False)
    slope = np.polyfit(X, Y, 1)[0]
    found = draws.posterior["line.b"]
    report(draws.posterior.ends.shape == (4, 300, 2) and abs(float(found.mean()) - slope) < 6 * float(found.std()) / np.sqrt(400),
           "a tree, bounds and outputs", found.mean(), slope)
    report(np.allclose(draws.posterior.ends[..., 1], draws.posterior["line.a"] + found), "outputs are those of the draws")
    ranks = model.sample(chains=4, draws=300, progress=False, ranks=2)
    report(np.array_equal(ranks.posterior.ends, draws.posterior.ends), "two ranks: the same draws")
    array = emass.Model.from_jax(lambda x: -jnp.sum(x**2) / 2, np.zeros((2, 3)))
    report(array.sample(chains=2, draws=50, progress=False).posterior.theta.shape == (2, 50, 2, 3), "a mere array")
    report(jnp.zeros(1).dtype == jnp.float32 and not jax.config.jax_enable_x64, "JAX is left as it was")
    nowhere = emass.Model.from_jax(lambda x: jnp.log(-jnp.sum(x**2)), np.zeros(2))
    report("no finite log density" in (text := said(lambda: nowhere.sample(chains=2, draws=50, progress=False))), "nowhere finite", text)
    report("expected a name of a, b" in said(lambda: emass.Model.from_jax(lambda p: -p["a"] ** 2, {"a": 0.0, "b": 0.0},
                                                                          bounds={"c": (0, 1)}).check()), "bounds of no parameter")
    report("found shape (2,)" in said(lambda: emass.Model.from_jax(lambda x: -x, np.zeros(2)).check()) and
           "KeyError: 'c'" in said(lambda: emass.Model.from_jax(lambda p: p["c"], {"a": 0.0}).check()),
           "no scalar, and a function that raises")


def no_derivative(p):
    return jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((), jnp.float64), p["a"])


@jax.custom_jvp
def twice(x):
    """A function with a derivative that is wrong."""
    return 2 * x


twice.defjvp(lambda x, moved: (2 * x[0], moved[0]))


def wrong(p):
    return p["a"] + p["b"]["c"][0, 0] + twice(p["b"]["c"][1, 0])


def check_infinite_bounds():
    """Infinity is no bound, as for scipy; a parameter that is not free has no draws."""
    for bounds, mean in (((0, np.inf), 1), ((-np.inf, 0), -1)):
        model = emass.Model.from_jax(lambda p: -abs(p["a"]), {"a": 1.0}, bounds={"a": bounds})
        found = float(model.sample(chains=4, draws=500, seed=1, progress=False).posterior.a.mean())
        report(abs(found - mean) < 0.15, f"bounds {bounds}", found)
    fixed = emass.Model.from_jax(lambda p: 0.0 * p["a"][0], {"a": jnp.zeros(1)}, bounds={"a": "simplex"})
    text = said(lambda: fixed.sample(chains=2, draws=50, progress=False))
    report(text == "model jax: found no parameter that is free to vary, expected one", "a simplex of one number alone", text)


def check_errors():
    """What cannot be a log density is an error of the package, one line, before the run."""
    start = {"a": 1.0}
    for name, (words, density, example, more) in {
        "an integer": ("log_density: found int32, expected a real number", lambda p: jnp.int32(3), start, {}),
        "a complex number": ("log_density: found complex128, expected a real number", lambda p: p["a"] + 0j, start, {}),
        "without a derivative": ("the gradient of log_density: ValueError: Pure callbacks do not support JVP.", no_derivative, start, {}),
        "no parameters": ("found no parameters in the example", lambda p: 0.0, {}, {}),
        "a name as an example": ("found 'a' in the example, expected real numbers", lambda p: 0.0, ["a"], {}),
        "a shape as an example": ("in the example, expected real numbers", lambda p: 0.0, jax.ShapeDtypeStruct((), jnp.float64), {}),
        "a complex example": ("found 1j in the example, expected real numbers", lambda p: 0.0, {"a": 1j}, {}),
        "two names that are one in the draws": ("found 'a/b' in the example beside another parameter that is called a_b in the draws",
                                                lambda p: 0.0, {"a/b": 1.0, "a_b": 1.0}, {}),
        "an output like a parameter": ("outputs: found 'a', the name of a parameter, expected another", lambda p: -p["a"] ** 2, start,
                                       {"outputs": lambda p: {"a": p["a"]}}),
        "bounds in the wrong order": ("bounds of a: found (1, 0), expected a lower bound below the upper one", lambda p: p["a"], start,
                                      {"bounds": {"a": (1, 0)}}),
        "bounds without a name": ("bounds: found (0, None), expected a mapping such as {'a': (0, None)}", lambda p: p["a"], start,
                                  {"bounds": (0, None)}),
        "no bound but NaN": ("bounds of a: found (nan, None), expected numbers, or None", lambda p: p["a"], start,
                             {"bounds": {"a": (float("nan"), None)}}),
        "a simplex of a number": ("bounds of a: found 'simplex' for one number, expected an array", lambda p: p["a"], start,
                                  {"bounds": {"a": "simplex"}}),
        "a wrong gradient": ("the derivative by b.c[1,0] is 1, by central differences 2", wrong, {"a": 1.0, "b": {"c": jnp.zeros((2, 1))}}, {}),
    }.items():
        text = said(lambda: emass.Model.from_jax(density, example, **more).check())  # noqa: B023
        report(words in text and "\n" not in text, name, text)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        emass.Model.from_jax(lambda p: -(p["a/b"] ** 2), {"a/b": 1.0})
    texts = [str(one.message) for one in warned]
    report(texts == ["from_jax: 'a/b' is called 'a_b' in the draws, as a name in the file has no slash"], "a name with a slash: a warning", texts)


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check()
    check_infinite_bounds()
    check_errors()
lib.finish()
