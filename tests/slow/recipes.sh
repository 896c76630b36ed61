#!/usr/bin/env bash
# jobs/apptainer.def, jobs/spack/package.py and jobs/conda/recipe.yaml as far as a machine without Apptainer,
# Spack and conda goes: the steps of the first are run in a Debian 12 of their own (debootstrap, root, a
# network; 1.5 GB), whose emass then samples, on ranks that the host's mpirun starts too; the others build
# and install by stand-ins for what Spack and conda call.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
project=$PWD root=$scratch/debian

# ---------------------------------------------------------------- Spack

spack() { # WHAT...: of the recipe, run with these arguments
    python3 - "$@" <<'END'
import os, subprocess, sys, types

wants = []
stub = types.ModuleType("spack.package")
stub.MakefilePackage = type("MakefilePackage", (), {})
for name in ("license", "version"):
    setattr(stub, name, lambda *words, **more: None)
stub.depends_on = lambda spec, **more: wants.append(spec.split()[0].split("+")[0])
stub.make = lambda *words: subprocess.run(["make", "--silent", *words, *os.environ["MORE"].split()], check=True)
sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), stub
recipe = {}
exec(compile(open("jobs/spack/package.py").read(), "package.py", "exec"), recipe)
if sys.argv[1] == "wants":
    print("\n".join(sorted(wants)))
else:
    package = recipe["Emass"]()
    package.prefix = sys.argv[2]
    package.spec = {"mpi": types.SimpleNamespace(mpicc=sys.argv[3])}
    package.build(package.spec, package.prefix)
    package.install(package.spec, package.prefix)
END
}

# Those of the build in .ci/install-deps, where the compiler and an MPI have names of their own.
same_names() {
    spack wants | sed 's/^c$/gcc/; s/^mpi$/openmpi/' | sort -u >"$scratch/recipe" &&
        sed -n 's/^build [a-z][^ ]*  *\([a-z][a-z0-9-]*\).*/\1/p' .ci/install-deps | sort -u >"$scratch/listed" &&
        diff "$scratch/listed" "$scratch/recipe"
}

installs() {
    MORE="B=$scratch/spack-build -j$(nproc)" spack build "$scratch/spack" "$(command -v mpicc)" &&
        "$scratch/spack/bin/emass" --version
}

check 'the recipe of Spack wants what .ci/install-deps lists' same_names
check 'and builds and installs' installs

# ---------------------------------------------------------------- conda

# The packages of requirements.host, by Spack's names; those of Python are its own.
conda_wants() {
    awk '/^  [a-z]+:$/ { on = $1 == "host:" } on && /^    - / { print $2 == "${{" ? $3 : $2 }' jobs/conda/recipe.yaml |
        sed 's/^yaml$/libyaml/; s/^liblapacke$/openblas/; s/^liblzma-devel$/xz/; s/^libutf8proc$/utf8proc/
            s/^libcurl$/curl/; s/^mpi$/openmpi/; /^\(python\|pip\|setuptools\)$/d' | sort -u
    printf '%s\n' gcc gmake pkgconf
}

conda_same_names() {
    conda_wants | sort -u >"$scratch/recipe" && diff "$scratch/listed" "$scratch/recipe"
}

# What rattler-build runs, but for the package of Python, which needs a network.
# shellcheck disable=SC2016 # of the recipe
conda_installs() {
    mkdir -p "$scratch/conda/bin" &&
        ln -sf "$(command -v mpicc)" "$scratch/conda/bin/mpicc" &&
        sed -n '/^  script:$/,/^$/s/^    - //p' jobs/conda/recipe.yaml | grep -v '^\$PYTHON' >"$scratch/script" &&
        env PREFIX="$scratch/conda" CPU_COUNT="$(nproc)" CFLAGS= CPPFLAGS= LDFLAGS= MAKEFLAGS="--eval=B:=$scratch/conda-build" \
            bash -eu "$scratch/script" && "$scratch/conda/bin/emass" --version
}

# By rattler-build's own library: a package for each MPI of variants.yaml, of the version of analysis/pyproject.toml.
conda_renders() {
    "$scratch/rattler/bin/python" - <<'END'
import re, tomllib
import rattler_build

variants = rattler_build.VariantConfig.from_file("jobs/conda/variants.yaml").to_dict()
rendered = rattler_build.Stage0Recipe.from_file("jobs/conda/recipe.yaml").render(
    rattler_build.VariantConfig({**variants, "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]}))
with open("analysis/pyproject.toml", "rb") as file:
    version = tomllib.load(file)["project"]["version"]
for one in rendered:
    package, host = one.recipe.package, [str(name) for name in one.recipe.requirements.host]
    print(one.variant, package.name, package.version, one.recipe.build.string, host)
    assert (str(package.name), str(package.version)) == ("emass", version), "name and version"
    mpi = re.match("mpi_([a-z]+)_h", str(one.recipe.build.string))[1]
    assert mpi in host and f"hdf5 * mpi_{mpi}_*" in host, "its MPI, and the HDF5 of it"
assert len(rendered) == len(variants["mpi"]) == 2, "one for each MPI"
END
}

check 'the recipe of conda wants the same' conda_same_names
check 'and builds and installs' conda_installs
if python3 -m venv "$scratch/rattler" &&
    "$scratch/rattler/bin/pip" install --quiet --disable-pip-version-check py-rattler-build==0.73.0; then
    check 'rattler-build renders it' conda_renders
else
    skip 'rattler-build renders the recipe of conda' 'py-rattler-build cannot be installed'
fi

# ---------------------------------------------------------------- Apptainer

section() { # NAME: of the definition, as a script
    awk -v name="%$1" '/^%/ { on = $1 == name; next } on' jobs/apptainer.def |
        sed "s/{{ MPI }}/$(sed -n 's/^ *MPI=//p' jobs/apptainer.def)/"
}

bootstraps() {
    limited debootstrap --variant=minbase bookworm "$root" "${EMASS_DEBIAN:-http://deb.debian.org/debian}"
}

# COMMAND... in it, as in a container. What is mounted there is seen by the command alone, and is gone with
# it, so that nothing of the host's lies below what is removed in the end. The folder that mpirun and its
# ranks meet in has the same name on both sides.
shared=$scratch/shared
cat >"$scratch/inside" <<END
#!/bin/sh
exec unshare --mount --propagation private sh -c '
    mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" && mount -t proc proc "$root/proc" &&
        mount --bind "$shared" "$root$shared" && exec chroot "$root" "\$@"' sh "\$@"
END
chmod +x "$scratch/inside"
inside() { limited "$scratch/inside" "$@"; }

builds() {
    mkdir -p "$shared" "$root$shared" "$root/opt/emass-source" &&
        git archive HEAD | tar -x -C "$root/opt/emass-source" && section post >"$root/post" &&
        EMASS_LIMIT=$((4 * EMASS_LIMIT)) inside sh /post
}

samples() {
    cp jobs/eight_schools.yaml "$root/" &&
        inside emass run --ranks 2 /eight_schools.yaml --output /out.h5 --quiet
}

# What `mpirun -n 2 apptainer exec emass.sif emass ...` does, where both have Open MPI of one series.
samples_by_the_host() {
    limited mpirun --mca orte_tmpdir_base "$shared" -n 2 "$scratch/inside" \
        emass run /eight_schools.yaml --output /host.h5 --quiet &&
        "$emass" diff "$root/out.h5" "$root/host.h5"
}

if [ "$(id -u)" != 0 ] || ! have debootstrap chroot unshare || ! unshare --mount true; then
    skip 'the steps of jobs/apptainer.def' 'needs root and debootstrap'
    finish
fi
check 'a Debian 12' bootstraps
check 'the steps of %post' builds
check 'its tests' inside sh -c "$(section test)"
check 'it says its MPI' sh -c "'$scratch/inside' emass --version | grep 'MPI: Open MPI'"
check 'it samples' samples
check 'on ranks of the host, the same draws' samples_by_the_host
finish
