#!/usr/bin/env python3
"""Models of PyMC: names, dims, transforms and deterministics, log likelihoods, predictions, ranks, resume; errors.
TAP; $1: the build."""
import contextlib
import io
import os
import tempfile

import lib
from lib import report, said

lib.needs_front_ends("models of PyMC")
lib.use_package()
# PyTensor's cache is empty at first: what is compiled now, and what is read from it later, have to give the same draws.
CACHE = tempfile.TemporaryDirectory()
os.environ["PYTENSOR_FLAGS"] = f"base_compiledir={CACHE.name}"

import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402
import pytensor  # noqa: E402
import scipy.stats  # noqa: E402

import emass  # noqa: E402

RANDOM = np.random.default_rng(1)
GROUP = RANDOM.integers(0, 5, 100)
X = RANDOM.normal(size=100)
Y = np.array([-1.0, 0, 0.5, 1, 2])[GROUP] + X + RANDOM.normal(size=100)


def hierarchy():
    with pm.Model(coords={"group": list("abcde")}) as model:
        x = pm.Data("x", X)
        group = pm.Data("which", GROUP)
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 2)
        z = pm.Normal("z", 0, 1, dims="group")
        theta = pm.Deterministic("theta", mu + tau * z, dims="group")
        share = pm.Dirichlet("share", np.ones(3))
        pm.Potential("more", pm.math.log(share[0]))
        pm.Normal("y", theta[group] + x, 1, observed=Y, shape=x.shape)
    return model


def check():
    model = emass.Model.from_pymc(hierarchy(), log_likelihood=True)
    report("agree with central differences" in model.check(), "the gradient of PyTensor, by numba")
    draws = model.sample(chains=4, draws=400, progress=False)
    posterior = draws.posterior
    report(list(posterior.group.values) == list("abcde") and posterior.theta.dims == ("chain", "draw", "group") and
           float(posterior.tau.min()) > 0 and np.allclose(posterior.share.sum(posterior.share.dims[-1]), 1) and
           np.allclose(posterior.theta, posterior.mu + posterior.tau * posterior.z), "names, dims, transforms, deterministics", posterior)
    place = posterior.theta.values[..., GROUP] + X
    report(np.allclose(draws.log_likelihood.y, scipy.stats.norm.logpdf(Y, place, 1)), "the log likelihood of each observation")
    observed, constant = draws.observed_data, draws.constant_data
    report(np.array_equal(observed.y, Y) and np.array_equal(constant.x, X) and np.array_equal(constant.which, GROUP)
           and "y" not in constant.data_vars, "observed_data and constant_data, as PyMC has them", observed, constant)
    first = posterior.share[..., 0]
    report(abs(float(first.mean()) - 0.5) < 6 * float(first.std()) / np.sqrt(400), "a potential counts: share[0] ~ beta(2, 2)", first.mean())
    report(np.isfinite(model.loo().elpd_loo), "leave-one-out cross-validation")
    predicted = model.predict({"x": np.array([0.0, 1.0]), "which": np.array([0, 4])}).predictions.y
    report(predicted.shape[:2] == (4, 400) and predicted.shape[2] == 2 and float(predicted.mean(("chain", "draw"))[1]) > 1.5,
           "predictions for new data", predicted)
    texts = [said(lambda: model.predict(new)) for new in ({"z": X}, {"nothing": X}, X, {"x": X[:3], "which": "a"})]
    report("found 'z', expected pm.Data of the model: x, which" in texts[0] and "found 'nothing'" in texts[1] and
           "found ndarray, expected a frame or a mapping" in texts[2] and texts[3].startswith("predict: ") and "\n" not in texts[3], "other new data", *texts)
    ranks = model.sample(chains=4, draws=400, progress=False, ranks=2)
    report(np.array_equal(ranks.posterior.theta, posterior.theta), "two ranks: the same draws")
    text = ""
    try:
        model.sample(chains=4, draws=400, progress=False, settings={"stop.max_time": "0s"}, output="cut.h5")
    except emass.Stopped as stopped:
        text = str(stopped)
    again = emass.resume("cut.h5", model, progress=False, settings={"stop.max_time": "none"})
    report("emass.resume" in text and np.array_equal(again.posterior.theta, posterior.theta), "stopped and resumed", text)


def check_frames():
    """Frames of other lengths than the data, for a model with labels of its rows."""
    import pandas as pd
    import polars as pl

    rows = pd.DataFrame({"x": X, "which": GROUP, "y": Y}, index=[f"row {i}" for i in range(100)])
    with pm.Model(coords={"row": rows.index}) as rowwise:
        x, which = (pm.Data(name, rows[name], dims="row") for name in ("x", "which"))
        pm.Normal("y", pm.Normal("level", 0, 5, shape=5)[which] + pm.Normal("slope") * x, 1, observed=Y, dims="row")
    model = emass.Model.from_pymc(rowwise)
    model.sample(chains=2, draws=200, progress=False)
    new = pd.DataFrame({"x": [0.0, 1.0, 2.0], "which": [0, 4, 4], "town": list("abc")}, index=["p", "q", "r"])
    other = pl.DataFrame(new.to_dict("list"))
    found = [model.predict(one).predictions.y for one in (new, other, other.lazy(), {"x": X[:3], "which": GROUP[:3]})]
    report(all(one.shape == (2, 200, 3) for one in found) and list(found[0].row.values) == ["p", "q", "r"] and
           list(found[1].row.values) == [0, 1, 2], "predictions for frames of pandas and polars, labelled by the index", *found)
    means = found[0].mean(("chain", "draw")).values
    report(np.allclose(means, [-1, 3, 4], atol=0.8) and list(rowwise.coords["row"]) == list(rows.index) and
           np.array_equal(rowwise["x"].get_value(), X), "they are right, and the model is as before", means)
    texts = [said(lambda one=one: model.predict(one)) for one in (new.rename(columns=str.upper), new.assign(which=new.town))]
    report(texts == ["predict: found a frame with the columns X, WHICH, TOWN, expected one of pm.Data of the model: x, which",
                     "predict: column which: found 'a', expected numbers, as pm.Data 'which' has"], "other frames", *texts)


def check_cache():
    """Sums of 120 rows by which a density that is read from PyTensor's cache once differed from one just compiled."""
    random, group = np.random.default_rng(0), np.repeat(np.arange(12), 10)
    x = random.normal(size=120)
    y = random.normal(1, 0.8, 12)[group] + 0.5 * x + random.normal(0, 0.5, 120)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfNormal("tau", 2)
        alpha = pm.Normal("alpha", mu, tau, shape=12)
        slope, sigma = pm.Normal("slope", 0, 1), pm.HalfNormal("sigma", 1)
        pm.Normal("y", alpha[pm.Data("group", group)] + slope * pm.Data("x", x), sigma, observed=y)
    runs, lines = [], []
    for n in (1, 2):
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            runs.append(emass.Model.from_pymc(model).sample(chains=2, draws=100, ranks=n).posterior)
        lines.append(shown.getvalue().splitlines())
    report(all(one[0] == "compiling the model of PyMC by PyTensor and numba" and sum("compiling" in line for line in one) == 1
               for one in lines), "one line says that the model is being compiled, on one rank and on two", *lines)
    report(np.array_equal(runs[0].alpha, runs[1].alpha), "two ranks, compiled behind this process: the same draws")


def check_new_data():
    """pm.set_data changes the posterior of a model that has been compiled."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 100), 1, observed=pm.Data("data", np.zeros(10)))
    source = emass.Model.from_pymc(model)
    found = []
    for shift in (0, 0, 5):
        with model:
            pm.set_data({"data": np.full(10, shift)})
        draws = source.sample(chains=4, draws=200, progress=False)
        found.append((float(draws.posterior.mu.mean()), float(draws.observed_data.y[0])))
    report(found[0] == found[1] and abs(found[0][0]) < 0.1 and abs(found[2][0] - 5) < 0.1 and found[2][1] == 5, "data that have changed", found)


def check_angles():
    """The mean of the cosine about the centre is I1(4) / I0(4), of modified Bessel functions, also where the circle ends."""
    with pm.Model() as model:
        pm.VonMises("angle", [0.5, 3], 4)
    result = emass.Model.from_pymc(model).sample(chains=4, draws=1000, progress=False)
    cosine = np.cos(result.posterior.angle.values - [0.5, 3])
    z = (cosine.mean(axis=(0, 1)) - 0.863523) / (cosine.std(axis=(0, 1)) / 30)
    verdict = result.attrs["verdict"]
    report((abs(z) < 4.5).all() and verdict.startswith("converged"), "angles", z, verdict)


class BlackBox(pytensor.graph.op.Op):
    """A log density of another program, without a gradient."""

    itypes, otypes = [pytensor.tensor.dscalar], [pytensor.tensor.dscalar]

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.array(-inputs[0] ** 2)


def check_errors():
    with pm.Model() as outside:
        pm.Potential("value", BlackBox()(pm.Normal("x")))
    text = said(lambda: emass.Model.from_pymc(outside).check())
    report(text.startswith("from_pymc: PyTensor finds no gradient: ") and "(a log density without one: from_function)" in text, "no gradient", text)
    with pm.Model() as discrete:
        pm.Poisson("k", 3)
    report("k is discrete" in said(lambda: emass.Model.from_pymc(discrete).check()), "a discrete variable")
    with pm.Model() as batches:
        pm.Normal("y", pm.Normal("mu"), observed=pm.Minibatch(Y, batch_size=10), total_size=len(Y))
    report("in each evaluation, as pm.Minibatch does: expected all" in said(lambda: emass.Model.from_pymc(batches).check()), "minibatches")
    with pm.Model() as shares:
        pm.Normal("y", pm.Normal("mu") * pytensor.shared(X, name="x"), observed=Y)
    text = said(lambda: emass.Model.from_pymc(shares).check())
    report(text == "from_pymc: found the shared variable x, expected pm.Data in its place", "a shared variable", text)
    report("expected a model of PyMC" in said(lambda: emass.Model.from_pymc(3)), "what is no model")


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check_cache()
    check()
    check_frames()
    check_new_data()
    check_angles()
    check_errors()
lib.finish()
