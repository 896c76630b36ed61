#!/usr/bin/env python3
"""Columns of data frames and of text files that hold the same mean the same: truth values, dates, factors of nearly as
many levels as rows. TAP; $1: the build."""
import contextlib
import io
import os
import tempfile

import lib
from lib import report, said

lib.needs_packages("columns of frames")
lib.use_package()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import emass  # noqa: E402

N = 40
RANDOM = np.random.default_rng(5)
QUIET = {"chains": 2, "draws": 60, "progress": False}
FRAME = pd.DataFrame({"x": RANDOM.normal(size=N).round(3), "garden": RANDOM.random(N) < 0.5})
FRAME["y"] = (FRAME.x + 2 * FRAME.garden + RANDOM.normal(size=N) / 10).round(3)


def spelled(true, false):
    """The frame as a text file that spells truth values so."""
    path = f"{true}.csv"
    FRAME.assign(garden=np.where(FRAME.garden, true, false)).to_csv(path, index=False)
    return path


def terms(formula, data, **options):
    """The names of coefficients, and the draws of them."""
    posterior = emass.Model.linear(formula, data, **options).sample(**QUIET).posterior
    return list(posterior.coefficient.values), posterior.beta.values


def check_truth_values():
    mixed = FRAME.assign(garden=[str(one).upper() if i % 2 else one for i, one in enumerate(FRAME.garden)])
    missing = FRAME.garden.astype(object).where(FRAME.index != 3)
    routes = {"frame": FRAME, "objects": FRAME.astype({"garden": object}), "nullable": FRAME.astype({"garden": "boolean"}),
              "columns": {name: list(FRAME[name]) for name in FRAME}, "arrays": {name: FRAME[name].to_numpy() for name in FRAME}, "mixed": mixed,
              "True": spelled("True", "False"), "TRUE": spelled("TRUE", "FALSE"), "true": spelled("true", "false")}
    models = {name: emass.Model.linear("y ~ x + garden", data) for name, data in routes.items()}
    found = {name: model.sample(**QUIET).posterior for name, model in models.items()}
    first = found["frame"].beta.values
    for name, one in found.items():
        expected = f"garden[{'TRUE' if name == 'mixed' else name if name.lower() == 'true' else 'True'}]"
        report(list(one.coefficient.values) == ["intercept", "x", expected] and np.array_equal(one.beta.values, first),
               f"truth values are a factor of two levels: {name}", one.coefficient.values)
    routes |= {"numbers": FRAME.astype({"garden": int}), "real numbers": FRAME.astype({"garden": float})}
    means = models["frame"].predict(FRAME).predictions.mu.values
    for name, model in models.items():
        wrong = [new for new, rows in routes.items() if not np.array_equal(model.predict(rows).predictions.mu.values, means)]
        report(not wrong, f"all predict the same from a model of {name}", wrong)
    for formula in ("y ~ x + garden", "y ~ x + factor(garden)"):  # as older versions stored a frame
        earlier = emass.Model.linear(formula, routes["numbers"])
        earlier.sample(**QUIET)
        wrong = [new for new, rows in routes.items() if not np.allclose(earlier.predict(rows).predictions.mu.values, earlier.predict(routes["numbers"]).predictions.mu.values)]
        report(not wrong, f"likewise from a model whose column has the numbers 0 and 1: {formula}", wrong)
    text = said(lambda: models["frame"].predict({"x": [1.0], "garden": ["yes"]}))
    report(text == "data: row 0: found level 'yes' of factor garden, expected 'False' or 'True'", "another word", text)
    text = said(lambda: models["frame"].predict({"x": [1.0], "garden": [2]}))
    report("found level '2' of factor garden" in text, "another number", text)
    names = terms("y ~ garden", FRAME.assign(garden=missing), na="drop")[0]
    report(names == ["intercept", "garden[True]"] and "row 3: found a missing value in column garden" in
           said(lambda: emass.Model.linear("y ~ garden", FRAME.assign(garden=missing)).check()), "a missing truth value", names)


def check_truth_values_as_numbers():
    """In functions, as a response, in an option: 1 and 0."""
    files = FRAME, "TRUE.csv", FRAME.astype({"garden": int})
    for formula in ("y ~ x + I(garden * x)", "garden ~ x"):
        draws = [terms(formula, data)[1] for data in files]
        report(all(np.array_equal(one, draws[2]) for one in draws), f"numbers where the formula needs them: {formula}")
    for options in ({}, {"positive": 1}, {"positive": "True"}, {"positive": True}, {"positive": "FALSE"}, {"positive": 0}):
        draws = [emass.Model.logistic("garden ~ x", data, **options).sample(**QUIET).posterior.beta.values for data in files]
        report(all(np.array_equal(one, draws[2]) for one in draws), f"labels: {options}")
    for options in ({"levels": {"garden": [1, 0]}}, {"levels": {"garden": [True, False]}}, {"levels": {"garden": ["true", "false"]}},
                    {"factors": ["garden=1"]}, {"factors": ["garden=true"]}):
        names = [terms("y ~ garden", data, **options)[0][1] for data in files]
        report(names == ["garden[False]", "garden[FALSE]", "garden[0]"], f"the reference level: {options}", names)
    network = {"layers": [{"dense": 2}], "output": "normal", "activation": "tanh"}
    text = said(lambda: print(emass.Model.built_in("network", FRAME, **network).check()))
    report(text == "no error", "numbers of a network", text)


def check_dates():
    when = pd.Series(pd.date_range("2020-01-01", periods=N))
    columns = {"dates and times": when + pd.Timedelta("1h"), "dates": when.dt.date, "times": pd.Series(pd.date_range("2020-01-01", periods=N, freq="37min")).dt.time,
               "durations": when - when[0], "zoned": when.dt.tz_localize("UTC"), "days of periods": when.dt.to_period("D")}
    for what, column in columns.items():
        frame = FRAME.assign(when=column)
        text = said(lambda: emass.Model.linear("y ~ when", frame).check())
        report(text.startswith("data: row 0: found '") and "\n" not in text and "for column when, expected a number, such as that of days since "
               "the first date (factor(when) in" in text, f"{what} are an error", text)
        names = terms("y ~ x", frame)[0]
        report(names == ["intercept", "x"], f"{what} that are not used are none", names)
    FRAME.assign(when=when.dt.strftime("%d.%m.%Y")).to_csv("dates.csv", index=False)
    text = said(lambda: emass.Model.linear("y ~ .", "dates.csv").check())
    report("dates.csv:2: found '01.01.2020' for column when, expected a number, such as" in text, "in a text file too", text)
    shifts = FRAME.assign(start=["06:00:00", "14:00:00"] * (N // 2), cure=["7 days", "14 days"] * (N // 2), who=[f"P{i % 4}" for i in range(N)])
    names = terms("y ~ start + cure + who", shifts)[0]
    report(names == ["intercept", "start[14:00:00]", "cure[7 days]", "who[P1]", "who[P2]", "who[P3]"], "a few times and durations in text are categories", names)
    text = said(lambda: emass.Model.linear("y ~ stay", FRAME.assign(stay=pd.to_timedelta([1, 2] * (N // 2), "D"))).check())
    report("row 0: found '1 days 00:00:00' for column stay, expected a number" in text, "durations of a frame are not", text)
    months = FRAME.assign(when=pd.to_datetime(["2020-02-01", "2020-01-01"] * (N // 2)))
    names = terms("y ~ factor(when)", months)[0]
    report(names == ["intercept", "when[2020-02-01]"], "a factor of dates, if the formula says so", names)
    text = said(lambda: emass.Model.linear("y ~ when", FRAME.assign(when=["2020-01-01", "spring"] * (N // 2))).check())
    report(text == "no error", "texts of which not all are dates", text)


def check_many_levels():
    """A coefficient for nearly each row is no error, for the prior makes it one with an answer, but a warning."""
    frame = FRAME.assign(id=[f"p{i}" for i in range(N)], pair=[f"p{i // 2}" for i in range(N)])
    for formula, n in {"y ~ id": N, "y ~ C(x)": FRAME.x.nunique(), "y ~ pair": 0, "y ~ x": 0}.items():
        with contextlib.redirect_stderr(io.StringIO()) as heard:
            emass.Model.linear(formula, frame).check()
        expected = f"has {n} levels in {N} rows, so that most coefficients describe a single row"
        report(expected in heard.getvalue() if n else not heard.getvalue(), f"{'a' if n else 'no'} warning: {formula}", heard.getvalue())


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check_truth_values()
    check_truth_values_as_numbers()
    check_dates()
    check_many_levels()
lib.finish()
