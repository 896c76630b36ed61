#!/usr/bin/env python3
"""emass predict: what each draw makes of new rows, beside numpy on the same draws; the same bytes on
any number of ranks; columns by name, the stored scaling, no response; what is refused leaves nothing
behind.  TAP; $1: the build."""
import os
import tempfile

import lib
from lib import report

lib.needs_packages("predictions")

import h5py
import numpy as np

ENVIRONMENT = dict(os.environ, SOURCE_DATE_EPOCH="0")
N_NEW = 300


def emass(*command, ranks=1):
    launcher = ["mpirun", "-n", ranks] if ranks > 1 else []
    return lib.limited(*launcher, lib.EMASS, *command, env=ENVIRONMENT)


def write(path, names, columns):
    with open(path, "w") as file:
        print(*names, sep=",", file=file)
        for row in zip(*columns):
            print(*row, sep=",", file=file)


def tables(model):
    """A table of a run and a new one: columns in another order, one more, no response."""
    random = np.random.default_rng(3)
    x, z, days = random.normal(3, 2, 400).round(3), random.normal(-1, 0.3, 400).round(3), random.integers(1, 9, 400)
    eta = 0.4 * (x - 3) - 0.7 * (z + 1)
    y = {"logistic": (random.random(400) < 1 / (1 + np.exp(-eta))).astype(int), "linear": eta.round(3),
         "poisson": random.poisson(days * np.exp(eta)), "negative_binomial": random.poisson(days * np.exp(eta))}
    counts = model in ("poisson", "negative_binomial")
    write("old.csv", ["x", "z", "days", "y"][0:2] + ["days"] * counts + ["y"], [x, z] + [days] * counts + [y[model]])
    x, z, days = random.normal(3, 2, N_NEW).round(3), random.normal(-1, 0.3, N_NEW).round(3), random.integers(1, 9, N_NEW)
    write("new.csv", ["z", "id", "days", "x"], [z, range(N_NEW), days, x])
    return x, z, days


def run(model, options, *more):
    with open("run.yaml", "w") as file:
        response = "" if "formula" in options else ", response: y"
        print(f"model: {{name: {model}, data: old.csv{response}{options}}}", file=file)
        print("sampler: {name: hmc, leapfrog_steps: 5, step_size: 0.02}", file=file)
        print("mass: {estimator: none}\nrun: {chains: 3, warmup: 10, draws: 30, seed: 5, init_radius: 0.2}", file=file)
    done = emass("run", "run.yaml", "--quiet", "--overwrite", "--output", "run.h5", *more)
    assert done.returncode == 0, done.stderr


def scaled(columns, file):
    """[n][1 + columns] with the scaling of the run."""
    rows = np.stack([np.ones(len(columns[0]))] + columns, 1)
    if "feature_mean" in file["constant_data"]:
        rows = (rows - file["constant_data/feature_mean"][:]) / file["constant_data/feature_sd"][:]
    return rows


def compare(model, options, inverse, spread):
    """mu as numpy has it; y about it: `spread` is its variance, of what is in the posterior."""
    x, z, days = tables(model)
    run(model, options)
    ranks = {n: emass("predict", "run.h5", "--data", "new.csv", "--output", f"{n}.h5", "--overwrite", ranks=n)
             for n in (1, 2, 4)}
    report(all(done.returncode == 0 for done in ranks.values()), f"{model}: predicts on 1, 2 and 4 ranks",
           *(done.stderr for done in ranks.values()))
    contents = {open(f"{n}.h5", "rb").read() for n in ranks}
    report(len(contents) == 1, f"{model}: the same bytes, more ranks than chains included")
    with h5py.File("run.h5") as run_file, h5py.File("1.h5") as file:
        rows, beta = scaled([x, z], run_file), run_file["posterior/beta"][:]
        exposure = days if "exposure" in options else 1
        mean = inverse(beta @ rows.T) * exposure
        mu, y = file["predictions/mu"][:], file["predictions/y"][:]
        report(mu.shape == (3, 30, N_NEW) and np.allclose(mu, mean, rtol=1e-12, atol=1e-13),
               f"{model}: mu is that of the draws", np.abs(mu / mean - 1).max())
        # Sums of independent terms, of mean 0 and variance 1; 5 standard errors.
        z_score = ((y - mu) / np.sqrt(spread(mu, run_file["posterior"]))).sum() / np.sqrt(y.size)
        report(abs(z_score) < 5, f"{model}: y is drawn about it", z_score)
        twin = ((y - 1.05 * mu - 0.05) / np.sqrt(spread(mu, run_file["posterior"]))).sum() / np.sqrt(y.size)
        report(abs(twin) > 5, f"{model}: and would not be about another mean", twin)


def shape(group, name):
    return group[name][:][:, :, None]


def opens():
    import xarray

    data = xarray.open_dataset("1.h5", group="predictions", engine="h5netcdf")
    report(data["y"].dims == ("chain", "draw", "observation") and data.sizes["observation"] == N_NEW and
           list(data["observation"].values) == list(range(N_NEW)), "xarray opens it")


def libsvm():
    """Sparse rows, of which the new ones lack the last column; a column too many is refused."""
    random = np.random.default_rng(4)
    for name, n, most in ("old.svm", 200, 30), ("new.svm", 50, 20), ("more.svm", 50, 40):
        with open(name, "w") as file:
            for i in range(n):
                print(i % 2, f"{random.integers(1, most // 2)}:1 {random.integers(most // 2, most) + 1}:0.5", file=file)
    open("old.svm", "a").write("1 30:1\n")
    with open("svm.yaml", "w") as file:
        print("model: {name: logistic, data: old.svm}\nrun: {chains: 2, warmup: 5, draws: 5}\n"
              "sampler: {name: hmc, leapfrog_steps: 2, step_size: 0.01}\nmass: {estimator: none}", file=file)
    emass("run", "svm.yaml", "--quiet", "--output", "svm.h5")
    done = emass("predict", "svm.h5", "--data", "new.svm")
    with h5py.File("svm.h5") as run_file, h5py.File("svm.predictions.h5") as file:
        rows = np.zeros((50, 31))
        rows[:, 0] = 1
        for i, line in enumerate(open("new.svm")):
            for entry in line.split()[1:]:
                rows[i, int(entry.split(":")[0])] = float(entry.split(":")[1])
        mean = 1 / (1 + np.exp(-(run_file["posterior/beta"][:] @ rows.T)))
        report(done.returncode == 0 and np.allclose(file["predictions/mu"][:], mean, rtol=1e-12),
               "LIBSVM, without the last columns", done.stderr)
    refused("an index beyond the run's", "expected an integer from 1 to 30", "svm.h5", "more.svm")


def lines():
    """Which rows of a table with gaps are predicted for."""
    with open("gaps.csv", "w") as file:
        print("x,z", *("NA,1" if i % 7 == 3 else f"{i},NA" if i % 11 == 5 else f"{i},1" for i in range(60)), sep="\n", file=file)
    tables("linear")
    run("linear", ", na: drop")
    kept = [i + 2 for i in range(60) if i % 7 != 3 and i % 11 != 5]
    for ranks in 1, 4:
        done = emass("predict", "run.h5", "--data", "gaps.csv", "--output", "gaps.h5", "--overwrite", ranks=ranks)
        with h5py.File("gaps.h5") as file:
            report(done.returncode == 0 and file["predictions_constant_data/line"][:].tolist() == kept and
                   file["predictions/mu"].shape[2] == len(kept), f"na: drop: the lines that are left, on {ranks}", done.stderr)


def only_intercept():
    """A model without predictors, as one that others are compared with."""
    tables("linear")
    run("linear", ", formula: y ~ 1")
    done = emass("predict", "run.h5", "--data", "new.csv", "--output", "p.h5", "--overwrite")
    with h5py.File("run.h5") as run_file, h5py.File("p.h5") as file:
        report(done.returncode == 0 and np.array_equal(file["predictions/mu"][:], np.repeat(run_file["posterior/beta"][:], N_NEW, 2)),
               "y ~ 1: the intercept of each draw, for all rows", done.stderr)


def written_otherwise():
    """New data whose header, separators or decimals are not those of the run's table."""
    open("old.csv", "w").write("area;y\n1,5;3\n2,5;5,5\n3,5;6,9\n4;8\n")
    run("linear", ", decimal: comma")
    open("rows.csv", "w").write("area;y\n1,5;0\n2,25;0\n")
    open("points.csv", "w").write("area,2020\n1.5,7\n2.25,9\n")
    means = []
    for data, *more in ["rows.csv"], ["points.csv", "--decimal", "point", "--header", "yes"]:
        done = emass("predict", "run.h5", "--data", data, "--output", "p.h5", "--overwrite", *more)
        with h5py.File("p.h5") as file:
            means.append(file["predictions/mu"][:])
        report(done.returncode == 0, f"{data} {' '.join(more)}", done.stderr)
    report(np.array_equal(*means), "the same rows, written with commas and with points and a name that is a number")
    refused("points where the run has commas", "where decimal is comma (decimal: point reads 1.5)", "run.h5", "points.csv")
    refused("a name that is a number", "(header: yes takes the first line as names)", "run.h5", "points.csv", "--decimal", "point")
    refused("no such decimal", "predict: found --decimal=dot, expected point or comma (see emass predict --help)", "run.h5", "points.csv", "--decimal", "dot")


def refused(what, message, file, data, *more):
    done = emass("predict", file, "--data", data, "--output", "bad.h5", *more)
    left = [name for name in os.listdir() if name.startswith("bad.h5")]
    report(done.returncode == 2 and done.stderr.count("\n") == 1 and message in done.stderr and not left,
           f"{what}: one line, nothing written", done.returncode, done.stderr, left)


def refuses():
    open("few.csv", "w").write("x,days\n1,2\n")
    open("text.csv", "w").write("x,z,days\n1,2,3\n1,b,3\n")
    open("noexposure.csv", "w").write("x,z\n1,2\n")
    open("zero.csv", "w").write("x,z,days\n1,2,0\n")
    refused("a column is not there", "few.csv:1: found no column 'z', expected the 2 features of the run: x, z", "run.h5", "few.csv")
    refused("no exposure", "found no exposure column 'days'", "run.h5", "noexposure.csv")
    refused("text in numbers", "text.csv:3: found 'b'", "run.h5", "text.csv")
    refused("an exposure of 0", "zero.csv:2", "run.h5", "zero.csv")
    refused("no file of a run", "expected an HDF5 file", "few.csv", "new.csv")
    refused("predictions of predictions", "no group posterior, expected one of draws (it has group predictions: emass summary --group predictions)", "1.h5", "new.csv")
    refused("no data", "none.csv", "run.h5", "none.csv")
    with open("schools.yaml", "w") as file:
        print("model: {name: eight_schools}\nrun: {chains: 1, warmup: 5, draws: 5}\nmass: {estimator: none}", file=file)
    emass("run", "schools.yaml", "--quiet", "--output", "schools.h5")
    refused("a model that does not predict", "makes no predictions", "schools.h5", "new.csv")
    kept = open("1.h5", "rb").read()
    done = emass("predict", "run.h5", "--data", "new.csv", "--output", "1.h5")
    report(done.returncode == 2 and "--overwrite" in done.stderr and open("1.h5", "rb").read() == kept,
           "an output that exists stays", done.stderr)
    done = emass("predict", "run.h5", "--data", "new.csv", "--output", "run.h5", "--overwrite")
    report(done.returncode == 2 and "is being read" in done.stderr, "the run's own file stays", done.stderr)
    done = emass("predict", "run.h5", "--data", "new.csv", "--output", "few.csv", "--overwrite")
    report(done.returncode == 2 and "not an output of emass" in done.stderr and open("few.csv").read() == "x,days\n1,2\n",
           "a file that is not ours stays", done.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    compare("logistic", ", standardise: true", lambda eta: 1 / (1 + np.exp(-eta)), lambda mu, _: mu * (1 - mu))
    opens()
    compare("linear", ", standardise: true, sigma: 0.5", lambda eta: eta, lambda mu, _: 0.25 + 0 * mu)
    compare("linear", ", noise: student_t, nu: 7, sigma: unknown", lambda eta: eta,
            lambda mu, group: 7 / 5 * shape(group, "sigma") ** 2 + 0 * mu)
    compare("poisson", ", exposure: days", np.exp, lambda mu, _: mu)
    compare("negative_binomial", ", exposure: days", np.exp, lambda mu, group: mu + mu ** 2 / shape(group, "phi"))
    refuses()
    lines()
    only_intercept()
    written_otherwise()
    libsvm()
lib.finish()
