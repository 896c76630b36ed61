#!/usr/bin/env python3
"""Models in Python, by libemass in the process: from Stan code, frames, functions and configs; their draws on ranks of
the program and of mpirun; predictions, evidence, checkpoints, errors; the examples in docstrings. TAP; $1: the build."""
import contextlib
import doctest
import importlib
import io
import glob
import os
import re
import subprocess
import sys
import tempfile
import types
import warnings

import lib
from lib import report, said

lib.needs_packages("models in Python")
lib.use_package()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import emass  # noqa: E402

X = np.arange(20.0)
FRAME = pd.DataFrame({"x": X, "flag": X % 3 == 0, "s": list("abcd" * 5), "y": 1 + 2 * X + np.sin(7 * X)})
QUIET = {"chains": 2, "draws": 60, "progress": False}


def normal(x):
    return -x @ x / 2, -x


def same(a, b, name):
    return np.array_equal(a.posterior[name], b.posterior[name])


def check_frames():
    model = emass.Model.linear("y ~ x + flag + factor(s)", FRAME, log_likelihood=True)
    draws = model.sample(**QUIET)
    by_columns = emass.Model.linear("y ~ x + flag + factor(s)", {name: FRAME[name] for name in FRAME}, log_likelihood=True)
    report(draws.posterior.beta.shape == (2, 60, 6) and same(draws, by_columns.sample(**QUIET), "beta"), "a frame, and its columns")
    report(same(draws, model.sample(**QUIET, ranks=2), "beta"), "the same draws by two ranks of the program")
    means = model.predict({"x": [3.0, 4.0], "flag": [0, 1], "s": ["a", "b"]}).predictions.mu.mean(("chain", "draw"))
    report(abs(float(means[0]) - 7) < 2.5 and means.size == 2, "predictions for new rows", means)
    again = model.predict({"x": [3.0, 4.0], "flag": [0, 1], "s": ["a", "b"]}, model.sample(**QUIET)).predictions.mu
    report(again.mean(("chain", "draw")).equals(means) and
           "expected the path" in said(lambda: model.predict({"x": [3.0], "flag": [0], "s": ["a"]}, by_columns)), "by its last draws, and no others")
    text = said(lambda: model.predict({"x": [3.0], "flag": [0], "s": ["east"]}))
    report(text.startswith("data: row 0: found level 'east'") and "expected 'a'" in text, "an error in new rows names no file of ours", text)
    report(np.isfinite(model.loo().elpd_loo), "leave-one-out cross-validation")
    report("\nprior      x ~ normal(" in (text := emass.Model.linear("y ~ x", FRAME).check()) and "/" not in text.splitlines()[-3] and
           "\ngradient   agrees" in text and "leapfrog" not in text, "check says the plan, without options and files of ours", text)
    report(repr(model.check()).startswith("model      linear: "), "in lines, also as the last line of a cell")
    report("found no group log_likelihood" in said(lambda: emass.loo(emass.Model.built_in("eight_schools").sample(**QUIET))),
           "what loo needs")
    missing = FRAME.assign(x=FRAME.x.where(FRAME.x != 3)).set_index(FRAME.s + FRAME.index.astype(str))
    text = said(lambda: emass.Model.linear("y ~ x", missing).sample(**QUIET))
    of_columns = said(lambda: emass.Model.linear("y ~ x", {name: missing[name] for name in missing}).check())
    report(text == 'data: row d3: found a missing value in column x, expected a number or text (na="drop" leaves such rows out)' and
           of_columns == text.replace("d3", "3"), "a missing value, by its row and column", text, of_columns)
    report(said(lambda: model.predict({"x": [3.0], "flag": [0]})).startswith("data: found no column 's'"), "a column that is not there")
    report(emass.Model.linear("y ~ x", missing, na="drop").sample(**QUIET).posterior.beta.shape == (2, 60, 2), "missing values")
    report("did you mean" in (text := said(lambda: emass.Model.linear("y ~ xx", FRAME).sample(**QUIET))) and
           text.startswith("config: model.formula"), "an error is one line of emass", text)
    numbered = FRAME[["x", "y"]].rename(columns={"x": 0})
    of_numbers = emass.Model.linear("y ~ `0`", numbered)
    report(same(of_numbers.sample(**QUIET), emass.Model.linear("y ~ x", FRAME).sample(**QUIET), "beta") and
           np.isfinite(of_numbers.predict({0: [3.0]}).predictions["mu"]).all(), "columns whose names are numbers")
    network = {"layers": [{"dense": 2}], "output": "normal", "activation": "tanh"}
    text, of_names = (said(lambda f=f: print(emass.Model.built_in("network", f, **network).check())) for f in (numbered, FRAME[["x", "y"]]))
    report(text == of_names == "no error", "of a network too", text, of_names)
    means, of_more = (model.predict(f).predictions["mu"] for f in (FRAME, FRAME.assign(**{"2020": X})))
    report(means.equals(of_more), "a column of new rows whose name is a number")
    with open("commas.csv", "w") as file:
        print("x;y", *(f"{x:g};{y}".replace(".", ",") for x, y in zip(FRAME.x, FRAME.y)), sep="\n", file=file)
    by_commas = emass.Model.linear("y ~ x", "commas.csv", decimal="comma", format="semicolon")
    by_commas.sample(**QUIET, output="commas.h5")
    means, of_file = (by_commas.predict(new).predictions["mu"] for new in (FRAME[["x", "y"]], "commas.csv"))
    report(means.equals(of_file), "a frame for a model of a table with decimal commas")
    with open("all_commas.csv", "w") as file:
        print("x;flag;s", *(f"{x + 0.5:g};False;a".replace(".", ",") for x in FRAME.x), sep="\n", file=file)
    of_comma = model.predict("all_commas.csv", format="semicolon", decimal="comma").predictions["mu"]
    FRAME.assign(**{"2020": X}).to_csv("numbered.csv", index=False)
    text = said(lambda: model.predict("numbered.csv"))
    report("found no column 'x'" in text and text.endswith("(header: yes takes the first line as names)") and
           np.array_equal(model.predict("numbered.csv", header="yes").predictions["mu"], of_more), "how the file of new rows is to be read", text)
    texts = [said(lambda: model.predict("numbered.csv", header="true")), said(lambda: model.predict(FRAME, decimal="comma")), said(lambda: model.predict("all_commas.csv"))]
    report(texts[0] == "predict: found header=true, expected auto, yes or no" and texts[1] == "predict: found decimal for DataFrame, expected the path of a table with it" and
           texts[2].endswith("(with decimal: comma that is one)"), "and what is no way to read it", *texts)
    report(of_comma.equals(model.predict(FRAME.assign(x=FRAME.x + 0.5, flag=False, s="a")).predictions["mu"]), "by commas, though the run was not")
    twice = pd.concat([FRAME, FRAME[["x"]]], axis=1)
    texts = [said(lambda f=f: emass.Model.linear("y ~ x", f)) for f in (twice, {1: X, "1": X, "y": X})]
    report("two columns called 'x'" in texts[0] and "two columns called '1'" in texts[1], "two columns of one name", texts)
    district = pd.Series(pd.Categorical(pd.to_datetime(["2020-01-01"] * 20)), name="d")
    text = said(lambda: report(model.predict(pd.concat([FRAME, district, district], axis=1)).predictions["mu"].equals(of_more), "two columns of one name that are not used in new rows"))
    twice = said(lambda: model.predict(twice))
    report(text == "no error" and twice == "data: found two columns called 'x', expected one name for each that is used", "but not of one that is used", text, twice)
    report("columns of unequal length" in said(lambda: emass.Model.linear("y ~ x", {"x": [1], "y": [1, 2]})), "unequal columns")


def check_categories():
    """Columns of categories and of texts are factors, in the order of their categories."""
    def terms(formula, frame, **options):
        return list(emass.Model.linear(formula, frame, **options).sample(**QUIET).posterior.coefficient.values)

    size = pd.Categorical(["small", "large"] * 10, ["small", "medium", "large"])
    month = pd.Series(pd.to_datetime(["2020-02-01", "2020-01-01"] * 10)).astype("category").cat.reorder_categories(
        pd.to_datetime(["2020-02-01", "2020-01-01"]))
    frame = FRAME.assign(size=size, dose=pd.Categorical([1, 2] * 10, [2, 1]), month=month, code=["10", "9"] * 10, unused=pd.Categorical(["a"] * 20))
    frame[" blank "] = size
    report((found := terms("y ~ x + size", frame)) == ["intercept", "x", "size[large]"], "the first category is the reference", found)
    report((found := terms("y ~ dose + month", frame)) == ["intercept", "dose[1]", "month[2020-01-01 00:00:00]"], "of numbers and of times", found)
    report((found := terms("y ~ s + 0 + flag", frame)) == ["s[a]", "s[b]", "s[c]", "s[d]", "flag[True]"], "texts and truth values", found)
    report((found := terms("y ~ code", frame)) == ["intercept", "code[9]"], "texts that look like numbers", found)
    report(list(found := emass.Model.linear("y ~ size", frame)._options["levels"]) == ["size"], "the config has levels of columns in the formula", found)
    report((found := terms("y ~ size", frame, levels={"size": ["large", "small"]})) == ["intercept", "size[small]"], "an order that is given", found)
    model = emass.Model.linear("y ~\n  x +\n  size", {name: frame[name] for name in frame})
    report(list(model.sample(**QUIET).posterior.coefficient.values) == ["intercept", "x", "size[large]"] and
           np.isfinite(model.predict({"x": [1.0], "size": ["large"]}).predictions["mu"]).all(), "a formula on three lines, of columns")
    text = said(lambda: emass.Model.linear("y ~ s", FRAME.assign(s=["a\nb", *FRAME.s[1:]])))
    report(text == "data: row 0: found 'a\\nb' in column 's', expected text without line breaks", "a text of two lines", text)


IN_ANOTHER = """
import sys; sys.path.insert(0, sys.argv[1])
import emass
print(emass.resume(sys.argv[2], draws=80, progress=False).posterior.sizes["draw"])
"""


def check_words_of_yaml():
    """yes, no, on and off are text, as the program reads them: in configs, and in those of files that another session resumes."""
    with open("words.csv", "w") as file:
        print("on,y", *(f"{i},{'yes' if i % 3 else 'no'}" for i in range(20)), sep="\n", file=file)
    with open("words.yaml", "w") as file:
        print("model: {name: logistic, formula: y ~ on, data: words.csv, header: yes, positive: no, log_likelihood: true}\n"
              "stop: {max_time: 01:30:00}\noutput: {file: off}", file=file)
    model = emass.Model.from_config("words.yaml")
    text = said(lambda: model.sample(**QUIET, output="words.h5"))
    report(text == "no error" and "log_likelihood" in emass.read("words.h5"), "from_config: yes, no and a clock time, and true", text)
    text = said(lambda: emass.run("words.yaml", ranks=1, settings={"run.chains": 2, "run.draws": 60}, progress=False))
    report(text == "no error" and os.path.exists("off"), "a file that is called off", text)
    with open("1e3", "w") as file:
        print("x,1.50", *(f"{i},{i % 7}" for i in range(20)), sep="\n", file=file)
    with open("written.yaml", "w") as file:
        print("model: {name: linear, data: 1e3, header: yes, response: 1.50}", file=file)
    model = emass.Model.from_config("written.yaml")
    texts = [said(model.check), *(said(lambda more=more: model.sample(**QUIET, output="written.h5", **more)) for more in ({}, {"ranks": 2, "overwrite": True})),
             said(lambda: emass.resume("written.h5", draws=70, progress=False))]
    report(texts == ["no error"] * 4, "from_config: numbers in options of text are as they are written", *texts)
    frame = pd.DataFrame({"2020": X, "y": ["yes" if i % 3 else "no" for i in range(20)]})
    emass.Model.logistic("y ~ `2020`", frame, positive="yes").sample(**QUIET, output="named.h5")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", IN_ANOTHER, os.path.join(lib.ROOT, "analysis"), "named.h5"],
                          capture_output=True, text=True)
    report(done.stdout == "80\n", "another session resumes a run of header: yes and positive: yes", done.stderr)


def check_stan():
    code = "data { int N; vector[N] y; } parameters { real mu; } model { y ~ normal(mu, 1); }"
    model = emass.Model.from_stan(code, {"N": 20, "y": FRAME["y"]})
    draws = model.sample(**QUIET)
    with open("mine.stan", "w") as file:
        file.write(code)
    emass.Model.from_stan("mine.stan", {"N": 20, "y": X})
    again = emass.Model.from_stan("mine.stan", {"N": 20, "y": FRAME["y"].to_numpy()}).sample(**QUIET, ranks=2)
    report(same(draws, again, "mu") and abs(float(draws.posterior.mu.mean()) - FRAME.y.mean()) < 0.2, "Stan, as text and as a file")
    report("no such file" in said(lambda: emass.Model.from_stan("none.stan")), "a program that is not there")
    wrong = emass.Model.from_stan("parameters { real x }")
    report((text := said(lambda: wrong.sample(**QUIET))).startswith("program:1:"), "Stan's error", text)


def check_stan_data():
    """Data of all kinds that CmdStanPy takes, and those that it cannot use."""
    code = """data { int N; matrix[N, 2] X; array[N] int flag; vector[0] e; real s; int on; array[2] real pair; matrix[N, 2] F; }
        parameters { vector[2] b; } model { b ~ normal(0, s); to_vector(flag) ~ normal(X * b + on + F * b + pair[2], 1); }"""
    table = np.arange(6.0).reshape(3, 2) / 4
    odd = {"N": np.int64(3), "X": table[::-1].astype(np.longdouble)[::-1], "flag": np.array([True, False, True]), "e": np.array([]),
           "s": np.longdouble(1.5), "on": np.bool_(True), "pair": 1 + 2j, "F": pd.DataFrame(table)}
    plain = {"N": 3, "X": table.tolist(), "flag": [1, 0, 1], "e": [], "s": 1.5, "on": 1, "pair": [1, 2], "F": table.tolist()}
    try:
        report(same(*(emass.Model.from_stan(code, data).sample(**QUIET) for data in (odd, plain)), "b"), "Stan: data of odd kinds")
    except (emass.Error, RecursionError) as error:
        report(False, "Stan: data of odd kinds", error)
    for name, value, expected in (("flag", pd.date_range("2020", periods=3), "data: flag: found dates"),
                                  ("X", np.ma.masked_array(table, mask=table > 1), "data: X: found a masked value"),
                                  ("N", {1, 2}, "data: N: found {1, 2}, ")):
        text = said(lambda: emass.Model.from_stan(code, {**plain, name: value}))  # noqa: B023
        report(text.startswith(expected), f"Stan: no data: {expected}", text)
    text = said(lambda: emass.Model.from_stan("\n"))
    report(text.startswith("from_stan: found an empty text"), "Stan: an empty program", text)
    for ranks in (1, 2):
        wrong = emass.Model.from_stan(code, {**plain, "flag": [1, 0]})
        text = said(lambda: wrong.sample(**QUIET, output="refused.h5", ranks=ranks))  # noqa: B023
        report("expected (3)" in text and not glob.glob("refused.h5*"), f"Stan: wrong data leave no file, ranks={ranks}", text, glob.glob("refused.h5*"))


def check_bridgestan():
    """A library with BridgeStan's C interface, written by hand: mu and L are N(0, s^2), mu below 2.5."""
    source = os.path.join(lib.ROOT, "tests", "run", "bridgestan_model.c")
    made = lib.limited("cc", "-std=c17", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", source, "-o", "model.so")
    model = emass.Model.from_bridgestan("model.so", {"s": np.float64(0.5)})
    draws = model.sample(chains=4, draws=300, seed=2, progress=False)
    spread = float(draws.posterior.L.std())
    report(abs(spread - 0.5) < 0.05 and same(draws, model.sample(chains=4, draws=300, seed=2, progress=False, ranks=2), "mu"),
           "a library of BridgeStan, in the process and on two ranks", made.stderr, spread)
    report("could not open" in said(lambda: emass.Model.from_bridgestan("none.so")), "a library that is not there")


def check_functions():
    model = emass.Model.from_function(normal, dim=3, gradient=True)
    report("agree with central differences" in model.check(), "the gradient of a function")
    draws = model.sample(chains=4, draws=500, progress=False)
    second = float((draws.posterior.theta**2).mean())
    report(abs(second - 1) < 6 * np.sqrt(2 / 2000), "draws of a function: variance 1", second)
    twice = emass.Model.from_function(lambda x: (-x @ x / 2, -2 * x), dim=3, gradient=True)
    report("by central differences" in said(twice.check), "a wrong gradient is found")
    named = emass.Model.from_function(
        lambda mu, sigma, p: -mu**2 / 2 - sigma + np.log(p).sum(), shapes={"mu": (), "sigma": (), "p": 3},
        gradient=lambda mu, sigma, p: (-mu, -1.0, 1 / p), bounds={"sigma": (0, None), "p": "simplex"},
        outputs=lambda mu, sigma, p: {"twice": 2 * p})
    named.check()
    draws = named.sample(chains=4, draws=500, progress=False).posterior
    report(draws.p.shape == (4, 500, 3) and np.allclose(draws.p.sum("p_dim_0"), 1) and np.array_equal(draws.twice, 2 * draws.p) and
           abs(float(draws.sigma.mean()) - 1) < 0.2, "names, bounds and outputs", draws.sigma.mean())
    report("expected one of dim" in said(lambda: emass.Model.from_function(normal)), "no dimension")
    without = emass.Model.from_function(lambda x: -x @ x / 2, dim=1).sample(chains=4, draws=500, progress=False)
    report(abs(float((without.posterior.theta**2).mean()) - 1) < 6 * np.sqrt(2 / 800), "a function without gradient",
           float((without.posterior.theta**2).mean()))


def check_failures():
    def partly(x):
        if x[0] > 0.5:
            raise ValueError("no value there")
        return (np.nan if x[0] < -2 else -x @ x / 2), -x

    ran = subprocess.run([sys.executable, "-c", PARTLY], capture_output=True, text=True)
    report(" evaluations failed (" in ran.stderr and "fine" in ran.stdout, "an exception is a rejection, and counted", ran.stderr, ran.stdout)
    text = said(lambda: emass.Model.from_function(lambda x: 1 / 0, dim=2, gradient=True).sample(**QUIET))
    report("ZeroDivisionError" in text and "\n" not in text, "one that always fails is an error of one line", text)
    draws = emass.Model.from_function(partly, dim=2, gradient=True).sample(**QUIET).posterior.theta
    report(float(draws[..., 0].max()) <= 0.5 and float(draws[..., 0].min()) >= -2, "no draw is where there is none")
    report("reported in full" in subprocess.run([sys.executable, "-c", UNREPORTED], capture_output=True, text=True).stderr,
           "outputs that fail are said")


PATHS = f"import sys; sys.path.insert(0, {os.path.join(lib.ROOT, 'analysis')!r}); import emass\n"
PARTLY = PATHS + """
def partly(x):
    if x[0] > 0.5: raise ValueError("no value there")
    return -x @ x / 2, -x
emass.Model.from_function(partly, dim=2, gradient=True).sample(chains=2, draws=60)
print("fine")
"""
UNREPORTED = PATHS + """
calls = []
def outputs(x):
    calls.append(1)
    if len(calls) > 20: raise ValueError("none")
    return {"a": 1.0}
emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=2, gradient=True, outputs=outputs).sample(chains=2, draws=60)
"""
INTERRUPTED = PATHS + """
import os, signal, time
calls = []
def slow(x):
    calls.append(1)
    if len(calls) == 300: os.kill(os.getpid(), signal.SIGINT)
    return -x @ x / 2, -x
try:
    emass.Model.from_function(slow, dim=3, gradient=True).sample(chains=2, draws=60, seed=4, output=sys.argv[1], progress=False)
except emass.Stopped as stop:
    print(stop.status, stop.file, stop)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
UNDER_MPIRUN = PATHS + """
import hashlib
one = emass.Model.from_function(lambda x: (-x @ x / 2, -x), dim=3, gradient=True).sample(chains=4, draws=60, progress=False)
two = emass.Model.linear("y ~ x", {"x": [0.0, 1, 2, 3], "y": [1, 2, 3.5, 4]}).sample(chains=4, draws=60, progress=False)
try: emass.Model.built_in("nope").sample()
except emass.Error as error: said = str(error)
with open(sys.argv[1], "a") as found:
    found.write(hashlib.md5(one.posterior.theta.values.tobytes() + two.posterior.beta.values.tobytes()).hexdigest() + " " + said + "\\n")
"""


def check_resume():
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED, "cut.h5"], capture_output=True, text=True)
    report("75 " in ran.stdout and "emass.resume" in ran.stdout and "True" in ran.stdout and os.path.exists("cut.h5.checkpoint"),
           "an interrupt leaves a checkpoint, and the signals as they were", ran.stdout, ran.stderr)
    other = emass.Model.from_function(lambda x: (-x @ x, -2 * x), dim=3, gradient=True)
    model = emass.Model.from_function(normal, dim=3, gradient=True)
    report("its model is in Python" in said(lambda: emass.resume("cut.h5", progress=False)), "whose model has to be given")
    report("other values than that of the run" in (text := said(lambda: emass.resume("cut.h5", other, progress=False))), "not another function", text)
    whole = model.sample(chains=2, draws=60, seed=4, progress=False, output="whole.h5")
    report(same(emass.resume("cut.h5", model, progress=False), whole, "theta"), "it goes on to the same draws")
    longer = emass.resume("whole.h5", model, draws=80, progress=False)
    report(longer.posterior.theta.shape == (2, 80, 3) and np.array_equal(longer.posterior.theta[:, :60], whole.posterior.theta), "extended")
    regression = emass.Model.linear("y ~ x", FRAME)
    text = said(lambda: regression.sample(**QUIET, settings={"stop.max_time": "0s"}, output="line.h5"), emass.Stopped)
    report("emass.resume" in text and same(emass.resume("line.h5", settings={"stop.max_time": "none"}, progress=False), regression.sample(**QUIET), "beta") and
           same(emass.read("line.h5"), regression.sample(**QUIET), "beta"), "a regression goes on from its file alone", text)
    regression.sample(**QUIET | {"draws": 40}, output="more.h5")
    alone = "import sys; sys.path.insert(0, sys.argv[1]); import emass; print(emass.resume('more.h5', draws=60, progress=False).posterior.sizes['draw'])"
    ran = subprocess.run([sys.executable, "-c", alone, os.path.join(lib.ROOT, "analysis")], capture_output=True, text=True)
    report(ran.stdout == "60\n", "so does one of another process, to more draws", ran.stdout, ran.stderr)
    runs = {"draws": 50, "output": "again.h5", "resume": True}
    text = said(lambda: regression.sample(**QUIET | runs, settings={"stop.max_time": "0s"}), emass.Stopped)
    goes_on = regression.sample(**QUIET | runs)
    report("emass.resume" in text and same(goes_on, regression.sample(**QUIET | {"draws": 50}), "beta") and
           same(goes_on, regression.sample(**QUIET | runs), "beta"), "resume=True: begins, goes on, and reads what is complete", text)
    report("expected one of them" in said(lambda: regression.sample(**QUIET | runs, overwrite=True)) and
           "found no output" in said(lambda: regression.sample(**QUIET, resume=True)), "resume=True with overwrite, or with no file")
    report("give overwrite=True" in said(lambda: regression.sample(**QUIET, output="line.h5")), "a file is not replaced unasked")
    report("no such file" in said(lambda: emass.resume("none.h5")) and "no such file" in said(lambda: emass.read("none.h5")),
           "nothing to go on with")
    report("ranks: found 0" in said(lambda: regression.sample(ranks=0)) and
           "found no folder" in said(lambda: regression.sample(output="no/folder/a.h5")), "no ranks, no folder")
    regression.sample(chains=2, progress=False, output="auto.h5")
    report("stop rule" in said(lambda: emass.resume("auto.h5", draws=9000)), "a number of draws for a run that its stop rule ends")


def check_mpirun():
    results, found = [], []
    for ranks, words in ((1, []), (2, ["mpirun", "-n", "2"]), (4, ["mpirun", "-n", "4"])):
        file = f"ranks-{ranks}.txt"  # mpirun may lose or divide what ranks print as they end
        results.append(subprocess.run([*words, sys.executable, "-c", UNDER_MPIRUN, file], capture_output=True, text=True))
        with open(file) as lines:
            found += lines.read().splitlines()
    report("unknown model 'nope'" in found[0] and found == found[:1] * 7,
           "a script under mpirun: all ranks have the draws of one process", *found, *(ran.stderr for ran in results))


def check_evidence():
    model = emass.Model.built_in("eight_schools")
    draws = model.sample(chains=2, draws=100, temper=True, progress=False)
    value, error = model.evidence()
    table = emass.evidence({"a": draws, "b": draws})
    report(abs(value + 31.3) < 6 * max(error, 0.05) and list(table.probability) == [0.5, 0.5], "evidence", value, error, table)
    functions = {"c": emass.Model.from_function(normal, dim=2, gradient=True).sample(chains=2, draws=60, temper=True, progress=False), "d": draws}
    report((text := said(lambda: emass.evidence(functions))).startswith("evidence: The data of a model of Python (c) are inside") and
           list(emass.evidence(functions, same_data=True).index) != [], "evidence of models whose data emass does not see", text)
    tables = {name: emass.Model.linear("y ~ x", FRAME.head(n)).sample(chains=2, draws=60, temper=True, progress=False)
              for name, n in {"e": 10, "f": 20}.items()}
    report("The data of e, f differ." in (text := said(lambda: emass.evidence(tables))), "of other data", text)
    transformed = {formula: emass.Model.linear(formula, FRAME.head(20)).sample(chains=2, draws=60, temper=True, progress=False)
                   for formula in ("y ~ x", "exp(y) ~ x")}
    report("differ" in (text := said(lambda: emass.evidence(transformed))), "y and exp(y) are other data", text)
    report("temper=True" in said(lambda: emass.evidence(model.sample(**QUIET))), "what it needs")


def check_config():
    with open("schools.yaml", "w") as file:
        file.write("model: {name: eight_schools}\nrun: {chains: 3, draws: 50, seed: 9}\n")
    model = emass.Model.from_config("schools.yaml")
    draws = model.sample(progress=False, settings={"output.save_warmup": True})
    report(draws.posterior.theta.shape == (3, 50, 8) and hasattr(draws, "warmup_posterior"), "a config, and settings")
    report("numpy" not in said(lambda: emass.Model.built_in("eight_schools", y=np.ones(3)).sample(**QUIET)), "arrays as options")


def check_verdict():
    """With the progress, or as a warning of the line that samples."""
    schools = emass.Model.built_in("eight_schools")
    with warnings.catch_warnings(record=True) as heard, contextlib.redirect_stderr(io.StringIO()) as printed:
        warnings.simplefilter("always", emass.ConvergenceWarning)
        short = [schools.sample(**QUIET), schools.sample(**QUIET, ranks=2), emass.run({"model": {"name": "eight_schools"}, "run": {"draws": 60}}, 1, progress=False)]
        emass.Model.built_in("gaussian").sample(chains=4, draws=1000, progress=False)
        silent = printed.getvalue()
        schools.sample(chains=2, draws=60)
    report([str(one.message) for one in heard] == [one.attrs["verdict"] for one in short] and not silent and
           {(one.category, one.filename) for one in heard} == {(emass.ConvergenceWarning, __file__)},
           "progress=False: no word, but a warning if the run is not converged", *heard, silent)
    report("\nnot converged: " in printed.getvalue(), "and with the progress the verdict", printed.getvalue())


def check_notebook():
    """A notebook has IPython; here something in its place notes what a cell is shown."""
    shown = []

    class ZMQInteractiveShell:
        pass

    class Cell:
        def update(self, page, raw):
            shown.append(page)

    display = types.SimpleNamespace(display=lambda *_, **__: Cell())
    sys.modules["IPython"] = types.SimpleNamespace(get_ipython=ZMQInteractiveShell, display=display)
    sys.modules["IPython.display"] = display
    emass.Model.built_in("eight_schools").sample(chains=2, draws=60)
    del sys.modules["IPython"], sys.modules["IPython.display"]
    report(shown and re.fullmatch(r"sampling (\d+)/\1  .* draws/s", shown[-1]["text/plain"]) and 'value="1.000"' in shown[-1]["text/html"], "a bar in a notebook", shown)


def check_doctests():
    modules = ["_commands", "_density", "_library", "data", "model", "progress"]
    failed = [f"{name}: {found.failed}" for name in modules
              if (found := doctest.testmod(importlib.import_module(f"emass.{name}"))).failed]
    report(not failed, "the examples in docstrings", failed)


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check_frames()
    check_categories()
    check_words_of_yaml()
    check_stan()
    check_stan_data()
    check_bridgestan()
    check_functions()
    check_failures()
    check_resume()
    check_mpirun()
    check_evidence()
    check_config()
    check_verdict()
    check_notebook()
    check_doctests()
lib.finish()
