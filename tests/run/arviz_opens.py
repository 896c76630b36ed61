#!/usr/bin/env python3
"""The output file: the same bytes on any number of ranks, and what ncdump, xarray and ArviZ make of it.
TAP; $1: the build. The file is the sample of tests/mpi/test_writer.c. Memory from malloc is not
zero here (MALLOC_PERTURB_, another filling for each rank count): none of it may get into the file.
"""
import hashlib
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.path.join(ROOT, "analysis", "venv", "bin", "python")
if os.path.exists(PYTHON) and os.path.dirname(PYTHON) != os.path.join(sys.prefix, "bin"):
    os.execv(PYTHON, [PYTHON] + sys.argv)

WRITER = os.path.join(sys.argv[1], "tests", "mpi", "test_writer")
SCHOOLS = ["Choate", "Phillips Exeter", "St. Paul\u2019s"]
N_CHAIN, N_DRAW = 8, 20
results = []


def report(good, what):
    results.append(good)
    print(f"{'ok' if good else 'not ok'} {len(results)} - {what}", flush=True)


def skip(what, why):
    results.append(True)
    print(f"ok {len(results)} - {what} # SKIP {why}", flush=True)


def write(path, ranks, shards, planned, kept):
    environment = dict(os.environ, MALLOC_PERTURB_=str(31 * ranks % 255))
    subprocess.run(["timeout", "-k", "5", "60", "mpirun", "-n", str(ranks), WRITER, path, str(N_CHAIN),
                    str(shards), str(planned), str(kept)], check=True, env=environment)


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
    try:
        text = subprocess.run(["ncdump", "-h", path], check=True, capture_output=True, text=True,
                              timeout=30).stdout
    except FileNotFoundError:
        skip("ncdump", "no ncdump")
        return
    for line in ["draw = UNLIMITED ; // (20 currently)", "int64 chain(chain) ;", "string school(school) ;",
                 "double beta(chain, draw, beta_dim_0, school, beta_dim_2) ;",
                 "mu:_FillValue = NaN ;", 'diverging:dtype = "bool" ;', ":seed = 42LL ;",
                 ":complete = 1LL ;", "int64 count ;", "double inv_mass(inv_mass_dim_0, inv_mass_dim_1) ;"]:
        report(line in text, f"ncdump: {line}")
    report("n_steps:_FillValue" not in text, "ncdump: integers have no _FillValue")
    root = text[:text.index("group:")]
    report("dimensions:" not in root, "ncdump: no dimension at the root")


def labels(coordinate):
    """h5netcdf, unlike netCDF4, hands fixed-length text over as bytes."""
    return [x.decode() if isinstance(x, bytes) else str(x) for x in coordinate.values]


def look_with_xarray(path, engine):
    import numpy as np
    import xarray

    if engine not in xarray.backends.list_engines():
        skip(f"xarray, {engine}", f"no {engine}")
        return
    with xarray.open_dataset(path, group="posterior", engine=engine) as file:
        data = file.load()
    report(dict(data.sizes) == {"chain": N_CHAIN, "draw": N_DRAW, "school": 3, "beta_dim_0": 2,
                                "beta_dim_2": 4}, f"xarray, {engine}: dimensions")
    report(all(data[d].dtype == np.int64 and (data[d].values == np.arange(data.sizes[d])).all()
               for d in ("chain", "draw", "beta_dim_0", "beta_dim_2")), f"xarray, {engine}: index coordinates")
    report(labels(data.school) == SCHOOLS, f"xarray, {engine}: labels")
    report(data.mu.dtype == np.float64 and data.n_steps.dtype == np.int64
           and data.diverging.dtype == bool, f"xarray, {engine}: dtypes, booleans restored")
    report(np.array_equal(data.mu, number(0))
           and all(np.array_equal(data.beta[:, :, i, j, k], number(4 + 12 * i + 4 * j + k))
                   for i in range(2) for j in range(3) for k in range(4)), f"xarray, {engine}: values")
    with xarray.open_dataset(path, engine=engine) as root:
        report(root.attrs["verdict"] == "converged: R\u0302 is 1.00" and root.attrs["seed"] == 42
               and root.attrs["config"] == "x" * 100000, f"xarray, {engine}: attributes")


def look_with_arviz(path, kept, path_cut):
    import warnings

    warnings.simplefilter("ignore")
    import arviz

    data = arviz.from_netcdf(path)
    report(set(data.groups()) >= {"posterior", "warmup_posterior", "observed_data"}, "arviz: groups")
    report(data.posterior.diverging.dtype == bool and data.warmup_posterior.w.shape == (8, 7, 5),
           "arviz: variables")
    report(len(arviz.summary(data)) == 1 + 3 + 24 + 1 + 1, "arviz: summary")
    cut = arviz.from_netcdf(path_cut).posterior
    report(cut.sizes["draw"] == kept and len(cut.draw) == kept and bool(cut.mu.notnull().all()),
           "arviz: a run that ended early")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = same_bytes(folder, [1, 2, 3, 4, 8], 1, N_DRAW, N_DRAW)
        same_bytes(folder, [2, 4, 8], 2, N_DRAW, N_DRAW)
        same_bytes(folder, [1, 2, 3, 4, 8], 1, 5, N_DRAW)
        path_cut = same_bytes(folder, [1, 2, 3, 4, 8], 1, 100, 11)
        look_with_ncdump(path)
        try:
            import arviz  # noqa: F401
        except ImportError:
            skip("xarray and ArviZ", "no analysis/venv: make analysis/venv/ready")
        else:
            look_with_xarray(path, "netcdf4")
            look_with_xarray(path, "h5netcdf")
            look_with_arviz(path, 11, path_cut)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
