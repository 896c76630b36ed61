"""emass for Spack, built from a clone: jobs/README.md says how."""

from spack.package import *

try:  # Spack 1.0 and later; before, it is in spack.package
    from spack_repo.builtin.build_systems.makefile import MakefilePackage
except ImportError:
    pass


class Emass(MakefilePackage):
    """MPI-parallel Bayesian sampling in C that learns its mass matrix from all chains together."""

    license("BSD-3-Clause")

    version("main")  # by `spack develop` or `spack dev-build`: nothing is fetched

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconf", type="build")
    depends_on("mpi")
    depends_on("hdf5+mpi+hl")
    depends_on("openblas threads=none")  # with LAPACKE; ranks are the threads
    depends_on("libyaml")
    depends_on("popt")
    depends_on("sleef")
    depends_on("random123")
    depends_on("zlib")
    depends_on("xz")
    depends_on("xxhash")
    depends_on("utf8proc")
    depends_on("jansson")
    depends_on("curl")

    def settings(self):
        return [f"MPICC={self.spec['mpi'].mpicc}", f"PREFIX={self.prefix}"]

    def build(self, spec, prefix):
        make(*self.settings(), "all")

    def install(self, spec, prefix):
        make(*self.settings(), "install")
