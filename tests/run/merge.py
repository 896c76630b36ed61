#!/usr/bin/env python3
"""emass merge, summary of several files, and diff: a run cut in two is what it was when put together
again, down to R-hat; chains of an array are numbered through; the same bytes on any number of ranks;
files that do not go together are refused; diff finds the number that was changed.  TAP; $1: the build."""
import os
import re
import shutil
import tempfile

import lib
from lib import report

lib.needs_packages("merge and diff")

import arviz
import h5py
import netCDF4
import numpy as np
import xarray

RUN = """
model: {name: logistic, data: table.csv, response: y, standardise: true, log_likelihood: true, posterior_predictive: true}
sampler: {name: hmc, leapfrog_steps: 4, step_size: 0.1}
run: {chains: 3, warmup: 40, draws: 60}
output: {save_warmup: true, file: run.h5}
"""


def emass(*command, ranks=1, **options):
    launcher = ["mpirun", "-n", ranks] if ranks > 1 else []
    return lib.limited(*launcher, lib.EMASS, *command, env=dict(os.environ, SOURCE_DATE_EPOCH="0"), **options)


def run(output, *more):
    done = emass("run", "run.yaml", "--quiet", "--output", output, *more)
    assert done.returncode == 0, done.stderr


def groups(path):
    with h5py.File(path) as file:
        return list(file)


def cut(path, chains, output, draws=None):
    """Some chains of a file, and of each the first draws, as another program would write them: with
    xarray."""
    mode = "w"
    for name in groups(path):
        with xarray.open_dataset(path, group=name) as data:
            data = data.isel(chain=chains) if "chain" in data.dims else data
            if "draw" in data.dims and not name.startswith("warmup_"):
                data = data.isel(draw=slice(0, draws))
            data.to_netcdf(output, group=name, mode=mode)
            mode = "a"


def table(*files, command="summary"):
    done = emass(command, *files, "--csv")
    return done.returncode, done.stdout


def copy(path, change, of="s1.h5"):
    shutil.copy(of, path)
    with h5py.File(path, "r+") as file:
        change(file)


def refuses(what, text, *command, status=2):
    before = sorted(os.listdir())
    done = emass(*command)
    lines = done.stderr.splitlines()
    report(done.returncode == status and len(lines) == 1 and text in lines[0] and sorted(os.listdir()) == before,
           what + " is refused in one line, and nothing is written", done.returncode, done.stderr)


def pieces():
    """R-hat and all else of the whole from its parts."""
    run("whole.h5", "--chains", "8")
    cut("whole.h5", slice(0, 4), "left.nc")
    cut("whole.h5", slice(4, 8), "right.nc")
    done = emass("merge", "both.h5", "left.nc", "right.nc")
    report(done.returncode == 0, "the halves of a run are merged", done.stderr)
    report(table("both.h5") == table("whole.h5") == table("left.nc", "right.nc"),
           "R-hat, and the whole table, is that of the run: of the merged file and of both together")
    same = True
    for name in ["posterior", "sample_stats", "log_likelihood", "posterior_predictive", "warmup_posterior"]:
        with xarray.open_dataset("whole.h5", group=name) as a, xarray.open_dataset("both.h5", group=name) as b:
            same = same and a.equals(b)
    report(same, "every number of every group of draws is where it was, with its labels")
    with xarray.open_dataset("both.h5", group="observed_data") as data:
        header, *rows = [line.split(",") for line in open("table.csv").read().split()]
        report(data.y.dims == ("observation",) and
               np.array_equal(data.y, [float(row[header.index("y")]) for row in rows]), "and the responses are there", data)


def seeds():
    names = ["s1.h5", "s2.h5", "s3.h5"]
    for seed, name in enumerate(names, 1):
        run(name, "--seed", seed)
    for ranks in (1, 3):
        done = emass("merge", f"on{ranks}.h5", *names, ranks=ranks)
        assert done.returncode == 0, done.stderr
    with open("on1.h5", "rb") as a, open("on3.h5", "rb") as b:
        report(a.read() == b.read(), "the same bytes on 1 and 3 ranks")
    report(table("on1.h5") == table(*names), "the table of the files is that of the merged one")
    data = arviz.from_netcdf("on1.h5")
    posterior = data["posterior"]
    report(dict(posterior.sizes)["chain"] == 9 and list(posterior.chain.values) == list(range(9)),
           "arviz opens it, chains numbered through", posterior)
    parts = [xarray.open_dataset(name, group="posterior") for name in names]
    report(np.array_equal(posterior.beta.values, np.concatenate([p.beta.values for p in parts])),
           "with the draws of the files, in their order")
    with netCDF4.Dataset("on1.h5") as file:
        report(file["runs/seed"][:].tolist() == [1, 2, 3] and
               file["runs/run_of_chain"][:].tolist() == [0] * 3 + [1] * 3 + [2] * 3 and
               file["sample_stats/diverging"].dtype == np.int8, "and says which chain is of which run")
    steps = [xarray.open_dataset(name, group="mass_adaptation") for name in names]
    merged = xarray.open_dataset("on1.h5", group="mass_adaptation")
    with h5py.File("on1.h5") as file:
        report("checkpoint" not in file, "merge: no state of one run", list(file))
    report(all(np.array_equal(merged.inv_mass.isel(run=i), steps[i].inv_mass) for i in range(3)) and
           np.array_equal(merged.step_size, np.concatenate([s.step_size for s in steps])),
           "what was learned of the mass has an axis for the run", merged)
    done = emass("predict", "on1.h5", "--data", "table.csv", "--output", "p.h5")
    with xarray.open_dataset("p.h5", group="predictions") as p:
        report(done.returncode == 0 and p.sizes["chain"] == 9, "predictions are made from all chains", done.stderr)
    done = emass("report", "on1.h5", "--output", "on1.html")
    report(done.returncode == 0, "and a report", done.stderr)


def warmups():
    run("longer.h5", "--seed", 7, "--set", "run.warmup=50")
    done = emass("merge", "uneven.h5", "s1.h5", "longer.h5")
    report(done.returncode == 0 and "warmup_posterior is left out" in done.stderr and
           "warmup_posterior" not in groups("uneven.h5") and "posterior" in groups("uneven.h5"),
           "warmups of different lengths are left out, and said to be", done.stderr)


def of_unequal_lengths():
    """One task of an array ended early, another was cut by its time limit: the draws that all have."""
    cut("whole.h5", slice(4, 8), "shorter.nc", draws=40)
    cut("whole.h5", slice(0, 8), "all40.nc", draws=40)
    said = "8 chains x 40 draws, of 2 files: the first 40 draws of each chain, as many as shorter.nc has\n"
    refuses("an unequal number of draws", "--common takes only the first", "merge", "x.h5", "left.nc", "shorter.nc")
    done = emass("merge", "common.h5", "left.nc", "shorter.nc", "--common")
    report(done.returncode == 0 and done.stdout == "common.h5: " + said, "--common merges the draws that all have, and says so", done.stdout, done.stderr)
    done = emass("summary", "left.nc", "shorter.nc", "--common")
    report(done.stdout.startswith("posterior: " + said), "so does a summary", done.stdout, done.stderr)
    report(table("common.h5") == table("all40.nc") == table("left.nc", "shorter.nc", "--common"),
           "R-hat, and the whole table, is that of the run of all chains cut to the same draws")
    report(table("common.h5", command="loo")[1] == table("all40.nc", command="loo")[1]
           == table("left.nc", "shorter.nc", "--common", command="loo")[1] != "", "and so is Pareto k")
    done = emass("summary", "common.h5")
    report("x 40 draws: the first 40 draws of each chain, as many as shorter.nc has\n" in done.stdout, "the file knows it", done.stdout)
    with netCDF4.Dataset("common.h5") as file:
        report(file["runs/draws"][:].tolist() == [60, 40] and "warmup_posterior" in file.groups, "and how many each had")

    def stop(file):
        file.attrs["complete"] = np.int64(0)
        for group in ("posterior", "sample_stats", "log_likelihood", "posterior_predictive"):
            for name, values in file[group].items():
                if values.ndim > 1 and values.dtype == float and name != "chain":
                    values[1:, 37:] = np.nan

    copy("stopped.h5", stop, "s2.h5")
    refuses("one that was stopped", "--common merges only the draws that all files have", "merge", "x.h5", "s1.h5", "stopped.h5")
    for ranks in (1, 2):
        done = emass("merge", f"stopped{ranks}.h5", "s1.h5", "stopped.h5", "s3.h5", "--common", ranks=ranks)
        report(done.returncode == 0 and "9 chains x 37 draws, of 3 files: the first 37 draws of each chain, as many as stopped.h5 has" in done.stdout,
               f"one that was stopped is merged with those that were not, on {ranks} ranks", done.stdout, done.stderr)
    posterior = arviz.from_netcdf("stopped1.h5").posterior
    parts = [xarray.open_dataset(name, group="posterior").isel(draw=slice(0, 37)) for name in ("s1.h5", "s2.h5", "s3.h5")]
    with netCDF4.Dataset("stopped1.h5") as cut_short, netCDF4.Dataset("on1.h5") as whole:
        report(set(whole.ncattrs()) - set(cut_short.ncattrs()) == {"divergences", "iterations", "smallest_e_bfmi"}
               and set(cut_short.ncattrs()) - set(whole.ncattrs()) == {"cut"}, "what was said of all draws is not said of some",
               cut_short.ncattrs(), whole.ncattrs())
    with open("stopped1.h5", "rb") as a, open("stopped2.h5", "rb") as b:
        report(a.read() == b.read() and np.array_equal(posterior.beta.values, np.concatenate([p.beta.values for p in parts])),
               "with the draws of the files, and the same bytes")


def thinned():
    """Told in a line each, and not refused: chains of either have the same law."""
    run("thinned.h5", "--seed", 9, "--set", "run.thin=2")
    unlike = "run.thin is 1 in s1.h5 and 2 in thinned.h5"
    done = emass("merge", "unlike.h5", "s1.h5", "s2.h5", "thinned.h5")
    report(done.returncode == 0 and done.stderr.count(f"warning: {unlike}: ") == 1,
           "files that are thinned unlike are merged, and told", done.stderr)
    done = emass("summary", "s1.h5", "s2.h5", "thinned.h5")
    report(done.stdout.count("\nUnequal thinning: " + unlike) == 1, "a summary of them tells it", done.stdout)
    report("hinned" not in emass("summary", "s1.h5", "s2.h5").stdout, "and of others does not")
    for name, seed, thinning in (("auto1.h5", 10, 1), ("auto2.h5", 11, 2), ("auto3.h5", 12, 2)):  # as draws: auto thins
        run(name, "--seed", seed)
        with netCDF4.Dataset(name, "a") as file:
            file.setncattr("thinning", np.int64(thinning))
    unlike = "the thinning of draws is 1 in auto1.h5 and 2 in auto2.h5"
    done = emass("merge", "autos.h5", "auto1.h5", "auto2.h5")
    report(done.stderr.count(f"warning: {unlike}: ") == 1, "so are those that draws: auto has thinned unlike", done.stderr)
    done = emass("merge", "alike.h5", "auto2.h5", "auto3.h5")
    more = emass("merge", "more.h5", "alike.h5", "auto1.h5")
    report("thinn" not in done.stderr and "is 2 in alike.h5 and 1 in auto1.h5" in more.stderr, "a merged file keeps the thinning of all",
           done.stderr, more.stderr)


def refused():
    run("short.h5", "--seed", 8, "--set", "run.draws=50")
    copy("other.h5", lambda f: f.attrs.modify("data_hash", b"xxh64:0"))
    copy("running.h5", lambda f: f.attrs.__setitem__("complete", np.int64(0)), "s2.h5")
    with open("notes.txt", "w") as file:
        print("not HDF5", file=file)
    refuses("another number of draws", "50 draws of each chain, expected 60", "merge", "x.h5", "s1.h5", "short.h5")
    refuses("the same in a summary", "50 draws of each chain, expected 60", "summary", "s1.h5", "short.h5")
    refuses("other data", "data_hash", "merge", "x.h5", "s2.h5", "other.h5")
    refuses("the same chains twice", "the same seed", "merge", "x.h5", "s1.h5", "s2.h5", "s1.h5")
    refuses("a run that has not ended", "has not ended", "merge", "x.h5", "s1.h5", "running.h5")
    refuses("what is no HDF5 file", "notes.txt: expected an HDF5 file", "merge", "x.h5", "s1.h5", "notes.txt")
    refuses("an output that exists", "--overwrite", "merge", "on1.h5", "s1.h5", "s2.h5")
    refuses("an output that is read", "s1.h5 is being read", "merge", "s1.h5", "s1.h5", "s2.h5", "--overwrite")
    refuses("an output of another program", "not an output of emass", "merge", "notes.txt", "s1.h5", "s2.h5", "--overwrite")
    refuses("one file", "two files or more", "merge", "x.h5", "s1.h5")
    refuses("to go on with a merged file", "emass merge made", "run", "run.yaml", "--output", "on1.h5", "--resume")
    refuses("to verify a merged file", "a file of 3 runs", "verify", "on1.h5")


def diffs():
    def nudge(file):
        beta = file["posterior/beta"]
        beta[1, 7, 2] = np.nextafter(beta[1, 7, 2], np.inf)
        beta[0, 9, 0] += 1

    shutil.copy("s1.h5", "same.h5")
    done = emass("diff", "s1.h5", "same.h5")
    report(done.returncode == 0 and "no difference in" in done.stdout, "diff: a copy does not differ", done.stdout)
    copy("nudged.h5", nudge)
    done = emass("diff", "s1.h5", "nudged.h5")
    report(done.returncode == 1 and done.stdout.count("\n") == 1 and
           "chain 1, draw 7: " in done.stdout and ", 1 ulp; 2 of " in done.stdout,
           "diff: the first draw that differs, by 1 ulp, of two numbers", done.stdout, done.stderr)
    done = emass("diff", "s1.h5", "s2.h5")
    report(done.returncode == 1 and "attribute seed: 1 | 2\n" in done.stdout and
           "config run.seed: 1 | 2\n" in done.stdout and "created_at" not in done.stdout,
           "diff: attributes and options by name", done.stdout)
    report(not re.search(r"\d{7,} ulps", done.stdout), "diff: no ulps of numbers that are far apart", done.stdout)
    done = emass("diff", "s1.h5", "on1.h5")
    report(done.returncode == 1 and "posterior: 3 chains x 60 draws | 9 chains x 60 draws\n" in done.stdout and
           "group runs: in on1.h5 alone\n" in done.stdout and "posterior: beta" not in done.stdout,
           "diff: files of other lengths are compared as far as both go", done.stdout)
    copy("bare.h5", lambda file: file.attrs.__delitem__("config"))
    for pair in (("s1.h5", "bare.h5"), ("bare.h5", "s1.h5")):
        done = emass("diff", *pair)
        report(done.returncode == 1 and done.stdout == "attribute config: in s1.h5 alone\n",
               "diff: a config in one file alone, " + " ".join(pair), done.stdout, done.stderr)
    refuses("diff: what is no HDF5 file", "notes.txt", "diff", "s1.h5", "notes.txt")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    random = np.random.default_rng(1)
    x = random.normal(size=(40, 2)).round(3)
    y = (random.random(40) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    with open("table.csv", "w") as file:
        print("a,b,y", *(f"{p},{q},{r}" for (p, q), r in zip(x, y)), sep="\n", file=file)
    with open("run.yaml", "w") as file:
        print(RUN, file=file)
    pieces()
    seeds()
    warmups()
    of_unequal_lengths()
    thinned()
    refused()
    diffs()
    os.chdir("/")
lib.finish()
