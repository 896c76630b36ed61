#!/usr/bin/env python3
"""The output file: the same bytes on any number of ranks, and what other programs make of it.
TAP; $1: the build. The file is the sample of tests/mpi/test_writer.c. Memory from malloc is not
zero here (MALLOC_PERTURB_, another filling for each rank count): none of it may get into the file.

Read by ncdump, h5py, R's ncdf4, xarray (both engines, every group) and both generations of ArviZ:
0.23, and the packages that ArviZ 1 is made of (version 1 of them needs Python 3.12; 0.8 runs on
3.11).
"""
import hashlib
import os
import shutil
import sys
import tempfile

import lib
from lib import report, skip

lib.prefer_packages()

WRITER = os.path.join(lib.BUILD, "tests", "mpi", "test_writer")
SCHOOLS = ["Choate", "Phillips Exeter", "St. Paul\u2019s"]
WORDS = ["0123456789" * 30, "", "\u8a9e", "a\nb", r"caf\xe9"]
GROUPS = ["posterior", "sample_stats", "warmup_posterior", "inv_mass", "observed_data", "constant_data"]
N_CHAIN, N_DRAW = 8, 20


def output(*command):
    """What a program prints; None where there is no such program."""
    return lib.limited(*command).stdout if shutil.which(command[0]) else None


def write(path, ranks, shards, planned, kept):
    environment = dict(os.environ, MALLOC_PERTURB_=str(31 * ranks % 255))
    done = lib.limited("mpirun", "-n", ranks, WRITER, path, N_CHAIN, shards, planned, kept, env=environment)
    if done.returncode:
        sys.exit(done.stderr)


def md5(path):
    with open(path, "rb") as file:
        return hashlib.md5(file.read()).hexdigest()


def same_bytes(folder, ranks, shards, planned, kept):
    """On each of `ranks`; returns the last path."""
    sums = set()
    for n in ranks:
        path = os.path.join(folder, f"{n}-{shards}-{planned}-{kept}.h5")
        write(path, n, shards, planned, kept)
        sums.add(md5(path))
    report(len(sums) == 1, f"{planned} draws planned, {kept} kept, {shards} shards: the same bytes "
           f"on {' '.join(map(str, ranks))} ranks")
    return path


def number(column):
    """The numbers of test_writer.c, [chain][draw]."""
    import numpy as np

    chain, draw = np.arange(N_CHAIN)[:, None], np.arange(N_DRAW)
    return chain + draw / 64 + column / 8192


def look_with_ncdump(path):
    text = output("ncdump", "-h", path)
    if text is None:
        skip("ncdump", "no ncdump")
        return
    for line in ["draw = UNLIMITED ; // (20 currently)", "int64 chain(chain) ;",
                 "char school(school, string15) ;", 'school:_Encoding = "utf-8" ;', "\tstring15 = 15 ;",
                 "double beta(chain, draw, beta_dim_0, school, beta_dim_2) ;", "char only(only, string1) ;",
                 "char word(word, string300) ;",
                 "mu:_FillValue = NaN ;", 'diverging:dtype = "bool" ;', ":seed = 42LL ;",
                 ":complete = 1LL ;", "int64 count ;", "double inv_mass(inv_mass_dim_0, inv_mass_dim_1) ;"]:
        report(line in text, f"ncdump: {line.strip()}")
    report("n_steps:_FillValue" not in text, "ncdump: integers have no _FillValue")
    root = text[:text.index("group:")]
    report("dimensions:" not in root, "ncdump: no dimension at the root")
    text = output("ncdump", "-v", "posterior/school", path)
    report(r'"St. Paul\342\200\231s"' in text and '"Choate"' in text, "ncdump: labels")


R_PROGRAM = r"""
suppressMessages(library(ncdf4))
file <- nc_open(commandArgs(TRUE)[1])
same <- function(name, label) stopifnot(identical(c(ncvar_get(file, name)), label))
same("posterior/school", c("Choate", "Phillips Exeter", "St. Paul\u2019s"))
same("constant_data/word", c(strrep("0123456789", 30), "", "\u8a9e", "a\nb", "caf\\xe9"))
same("constant_data/only", "")
stopifnot(identical(c(file$dim[["posterior/school"]]$vals), c("Choate", "Phillips Exeter", "St. Paul\u2019s")),
          identical(dim(ncvar_get(file, "posterior/theta")), c(3L, 20L, 8L)),
          identical(dim(ncvar_get(file, "posterior/beta")), c(4L, 3L, 2L, 20L, 8L)),
          all(sapply(names(file$var), function(name) length(ncvar_get(file, name))) > 0),
          identical(ncatt_get(file, 0, "verdict")$value, "converged: R\u0302 is 1.00"),
          identical(nchar(ncatt_get(file, 0, "config")$value), 100000L))
cat("all as expected\n")
"""


def look_with_r(path):
    if output("Rscript", "-e", "if (nzchar(system.file(package = 'ncdf4'))) cat('yes')") != "yes":
        skip("R", "no R package ncdf4")
        return
    result = lib.limited("Rscript", "-e", R_PROGRAM, path, env=dict(os.environ, LC_ALL="C.UTF-8"))
    report(result.returncode == 0 and "all as expected" in result.stdout, "R, ncdf4: every variable, labels, attributes")
    print(result.stderr, file=sys.stderr, end="")


def look_with_h5py(path):
    import h5py
    import numpy as np

    def text(dataset):
        encoding = dataset.attrs["_Encoding"].decode()  # to h5py, text of netCDF is bytes
        return [b"".join(row).decode(encoding) for row in dataset[()]]

    with h5py.File(path) as file:
        report(sorted(file) == sorted(GROUPS), "h5py: groups")
        report(text(file["posterior/school"]) == SCHOOLS and text(file["constant_data/word"]) == WORDS
               and text(file["constant_data/only"]) == [""], "h5py: labels")
        report(file["posterior/theta"].dims[2][0].name == "/posterior/school", "h5py: dimension scales")
        report(file.attrs["verdict"].decode() == "converged: R\u0302 is 1.00" and file.attrs["seed"] == 42,
               "h5py: attributes")
        number_of = [file[f"{g}/{d}"].attrs["_Netcdf4Dimid"] for g in GROUPS for d in file[g]
                     if file[f"{g}/{d}"].is_scale]
        report(sorted(number_of) == list(np.arange(len(number_of))), "h5py: netCDF's numbers of dimensions")


def look_with_xarray(path, engine):
    import numpy as np
    import xarray

    if engine not in xarray.backends.list_engines():
        skip(f"xarray, {engine}", f"no {engine}")
        return
    group = {}
    for name in GROUPS:
        with xarray.open_dataset(path, group=name, engine=engine) as file:
            group[name] = file.load()
    data, words = group["posterior"], group["constant_data"]
    report(dict(data.sizes) == {"chain": N_CHAIN, "draw": N_DRAW, "school": 3, "beta_dim_0": 2,
                                "beta_dim_2": 4}, f"xarray, {engine}: dimensions")
    report(all(data[d].dtype == np.int64 and (data[d].values == np.arange(data.sizes[d])).all()
               for d in ("chain", "draw", "beta_dim_0", "beta_dim_2")), f"xarray, {engine}: index coordinates")
    report(list(data.school.values) == SCHOOLS and list(group["observed_data"].school.values) == SCHOOLS
           and list(words.word.values) == WORDS and list(words.only.values) == [""], f"xarray, {engine}: labels")
    report(all(np.array_equal(data.theta.sel(school=s), number(1 + i)) for i, s in enumerate(SCHOOLS))
           and float(words["size"].sel(word="\u8a9e")) == 3, f"xarray, {engine}: selection by label")
    report(data.mu.dtype == np.float64 and data.n_steps.dtype == np.int64
           and data.diverging.dtype == bool, f"xarray, {engine}: dtypes, booleans restored")
    report(np.array_equal(data.mu, number(0))
           and all(np.array_equal(data.beta[:, :, i, j, k], number(4 + 12 * i + 4 * j + k))
                   for i in range(2) for j in range(3) for k in range(4)), f"xarray, {engine}: values")
    with xarray.open_dataset(path, engine=engine) as root:
        report(root.attrs["verdict"] == "converged: R\u0302 is 1.00" and root.attrs["seed"] == 42
               and root.attrs["config"] == "x" * 100000, f"xarray, {engine}: attributes")
    report(all(("sample_dims" in of.attrs) == ("draw" in of.sizes) and
               list(of.attrs.get("sample_dims", ["chain", "draw"])) == ["chain", "draw"] for of in group.values()),
           f"xarray, {engine}: sample_dims of groups of draws, as ArviZ writes them")


def look_with_arviz(path, kept, path_cut):
    import arviz

    data = arviz.from_netcdf(path)
    report(set(data.groups()) == set(GROUPS), "arviz: groups")
    report(data.posterior.diverging.dtype == bool and data.warmup_posterior.w.shape == (8, 7, 5),
           "arviz: variables")
    table = arviz.summary(data)
    report(len(table) == 1 + 3 + 24 + 1 + 1, "arviz: summary")
    report([f"theta[{s}]" for s in SCHOOLS] == [x for x in table.index if x.startswith("theta")],
           "arviz: names of elements")
    cut = arviz.from_netcdf(path_cut).posterior
    report(cut.sizes["draw"] == kept and len(cut.draw) == kept and bool(cut.mu.notnull().all()),
           "arviz: a run that ended early")


def look_with_arviz_1(path):
    try:
        import arviz_base
        import arviz_stats
        import xarray
    except ImportError as error:
        skip("arviz-base, arviz-stats", str(error))
        return
    name = f"arviz-base {arviz_base.__version__}"
    data = xarray.open_datatree(path)  # this is arviz.from_netcdf of version 1
    report(sorted(data.children) == sorted(GROUPS), f"{name}: groups")
    report(list(data["posterior"].school.values) == SCHOOLS, f"{name}: labels")
    table = arviz_stats.summary(data, var_names=["mu", "theta"])
    report([f"theta[{s}]" for s in SCHOOLS] == [x for x in table.index if x.startswith("theta")],
           f"{name}: names of elements")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = same_bytes(folder, [1, 2, 3, 8], 1, N_DRAW, N_DRAW)
        same_bytes(folder, [2, 4], 2, N_DRAW, N_DRAW)
        same_bytes(folder, [1, 3, 4], 1, 5, N_DRAW)
        path_cut = same_bytes(folder, [1, 3, 4], 1, 100, 11)
        look_with_ncdump(path)
        look_with_r(path)
        try:
            import arviz  # noqa: F401
        except ImportError:
            skip("h5py, xarray and ArviZ", "no analysis/venv: make analysis/venv/ready")
        else:
            look_with_h5py(path)
            look_with_xarray(path, "netcdf4")
            look_with_xarray(path, "h5netcdf")
            look_with_arviz(path, 11, path_cut)
            look_with_arviz_1(path)
    lib.finish()


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
