# emass: an MPI-parallel Bayesian sampler that learns its mass matrix. See README.md.
#   make [all]      build build/$(MODE)/emass and libemass        make demo    install, build, sample
#   make check      install, build, run every test                make bench   figures as JSON lines
#   make check-fast build, then the unit tests and those of ranks on two of them: two minutes on two cores
#   make check-slow what is slow and rarely breaks, an hour before a release (tests/README.md)
#   make lint       rooms, symbols, headers, gcc and clang        make format  clang-format in place
#   make install    into PREFIX                                   make deps    what the build needs
#   make stanli     the interpreter of Stan programs, beside the built and the installed emass (PREFIX)
#   make data       public data sets for jobs/                    make plots   figures of demo.h5
#   make help       this text                                     make guide   the guide, as a site in build/guide
#   make sdist      what pip builds emass from                    make wheel   what pip installs; both in build/wheel/dist
#   make papers     the papers' experiments, paper's numbers beside ours (resumable, 5 minutes)
#   make papers-topics   those of topic models, into the same page (an hour and a half)
#   make papers-networks   those of networks, into the same page (hours; LIMIT=10m: what a run may take)
#   make bench-topics CORPUS=20news|wiki7702   perplexity against CPU seconds beside peers (from PyPI), on a set of EMASS_DATA
#                   TRAIN=... TEST=... TOPICS="--topics 100"   or on another
#   make bench-topic-priors TRAIN=... [TEST=...]   perplexity with learned priors beside a grid of fixed ones
#   make bench-network   steps a second of networks on MNIST beside JAX (from PyPI)
#   make bench-pymc      seconds a gradient of a PyMC model beside nutpie (from PyPI), five minutes
#   make bench-scale     what collective operations cost on up to 4,096 ranks, simulated (Debian's libsimgrid-dev and libhdf5-dev)
#   make bench-posteriordb   ESS per gradient beside Stan's NUTS and nutpie (from PyPI), 20 minutes; POSTERIORDB="--seeds 5"
#                   ALL=1: every posterior of EMASS_DATA, or of CHECKOUT=FOLDER of posteriordb, seconds and memory too; hours
#   make bench-overhead      what a run spends outside of its model on one rank, 10 minutes; OVERHEAD="--runs 1 --beside OTHER"
#   make bench-tempering     weights of modes and evidence of known mixtures, 5 minutes; TEMPERING="--seeds 5 asym"
#   make bench-evidence      log evidence beside dynesty and pocoMC (from PyPI, with torch); EVIDENCE="--seeds 1 shells"
#   make bench-verdict       how often *converged* is said falsely, beside Stan's NUTS, 30 minutes; VERDICT="--seeds 5 --only far"
# MODE=release|debug|asan; V=1 shows commands. MPICC=mpicc.mpich: another MPI than that of mpicc, with its HDF5
# (B=build/mpich beside the first). Lasting overrides go into config.mk, which git ignores.
-include config.mk

MODE   ?= release
PREFIX ?= /usr/local
MPICC  ?= mpicc
CC     := $(MPICC)
B      ?= build/$(MODE)
Q      := $(if $(filter 1,$(V)),,@)

# The MPI that is linked, as far as what it compiles with tells, and its mpirun, which `emass run --ranks` calls.
MPI      = $(firstword $(foreach m,mpich openmpi,$(if $(findstring $m,$(shell $(CC) -show 2>/dev/null)),$m)) openmpi)
MPIRUN  ?= $(if $(findstring /,$(MPICC)),$(dir $(MPICC)))$(patsubst mpicc%,mpirun%,$(notdir $(MPICC)))

# Libraries by pkg-config, asked for only when something is compiled (the first run may install them).
HDF5     = $(firstword $(foreach p,hdf5-$(MPI) $(if $(filter openmpi,$(MPI)),hdf5-mpi) hdf5,$(shell pkg-config --exists $p 2>/dev/null && echo $p)))
# LAPACKE is in Spack's and EasyBuild's OpenBLAS, and by itself in Debian's.
LAPACKE  = $(shell pkg-config --exists lapacke 2>/dev/null && echo lapacke)
PACKAGES = $(HDF5) $(LAPACKE) openblas yaml-0.1 sleef zlib liblzma libxxhash libutf8proc jansson
PKG_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) popt 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lhdf5_hl
POPT_LIBS  := $(shell pkg-config --libs popt 2>/dev/null)
# emass report --figures runs the script of the page by Duktape, where that is installed.
ifeq ($(shell pkg-config --exists duktape 2>/dev/null && echo yes),yes)
PKG_CFLAGS += -DEM_DUKTAPE $(shell pkg-config --cflags duktape)
POPT_LIBS  += $(shell pkg-config --libs duktape)
endif
# Model umbridge loads libcurl when it is asked for; its headers are needed to build that.
ifeq ($(shell pkg-config --exists libcurl 2>/dev/null && echo yes),yes)
PKG_CFLAGS += -DEM_CURL $(shell pkg-config --cflags libcurl)
endif
CHECK_CFLAGS := $(shell pkg-config --cflags check 2>/dev/null)
CHECK_LIBS   := $(shell pkg-config --libs check 2>/dev/null)

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wno-psabi \
            -Wno-missing-field-initializers
OPTIMISE.release := -O3
OPTIMISE.debug   := -O1 -g -DEM_DEBUG
# What computes or parses is optimised, the rest, as the tests, compiles in a third of the time. Unrolled, the
# loops over lanes in an array take clang half a minute a file.
OPTIMISE.asan    := -g1 -DEM_DEBUG -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
VERSION  := 0.1.0
COMMIT   := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
# Calls of HDF5 are those of 1.10, whichever later one is there.
CPPFLAGS := -Iinclude -Isrc -D_GNU_SOURCE -DH5_USE_110_API
CFLAGS   ?=
# One set of objects serves the program and both libraries, of which only what is EM_API is seen.
ALL_CFLAGS = -std=c17 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno $(OPTIMISE.$(MODE)) $(WARNINGS) $(if $(CI),-Werror) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS)
LIBS       = $(PKG_LIBS) -ldl -lm

ifeq ($(MODE),asan)
$(foreach room,data mass math model posterior sampler,$(B)/obj/$(room)/%.o): private OPTIMISE.asan += -O1 -fno-unroll-loops
endif

# libFuzzer's own main is for its programs alone.
$(B)/tests/fuzz/%: private CHECK_LIBS = -fsanitize=fuzzer

SOURCES := $(sort $(wildcard src/*/*.c src/*/*/*.c))
OBJECTS := $(patsubst src/%.c,$(B)/obj/%.o,$(SOURCES))
LIBRARY := $(B)/libemass.a
SONAME  := libemass.so.0
SHARED  := $(B)/$(SONAME)
PROGRAM := $(B)/emass
TESTS   := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/unit/*/*.c tests/mpi/*.c tests/stat/*.c))
SUPPORT := $(patsubst tests/%.c,$(B)/tests/%.o,$(wildcard tests/support/*.c))
BENCHES := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bench/*.c))

.PHONY: all help demo check check-built check-fast check-slow bench bench-overhead bench-tempering bench-evidence bench-posteriordb bench-verdict bench-scale bench-topics bench-topic-priors bench-network bench-pymc lint format install deps data stanli plots papers papers-topics papers-networks guide sdist wheel clean tests
all: $(PROGRAM) $(LIBRARY) $(SHARED)

# Files that change only when what they hold does: another flag rebuilds all, a deleted source the library.
keep = $(shell mkdir -p $(B); printf '%s\n' '$2' | cmp -s - $(B)/$1 || printf '%s\n' '$2' > $(B)/$1)
$(call keep,flags,$(ALL_CFLAGS))
$(call keep,mpi,$(MPICC) $(MPIRUN))
$(call keep,sources,$(SOURCES))
$(call keep,support,$(SUPPORT))
$(shell printf '%s\n' '#define EM_VERSION "$(VERSION)"' '#define EM_COMMIT "$(COMMIT)"' '#define EM_MPIRUN "$(MPIRUN)"' \
        > $(B)/version.new; \
        cmp -s $(B)/version.new $(B)/version.h || cp $(B)/version.new $(B)/version.h)

# The HDF5 of another MPI would bring that one's mpi.h and library along.
OTHER_MPI := $(findstring $(filter-out $(MPI),mpich openmpi),$(PKG_CFLAGS) $(PKG_LIBS))
.PHONY: hdf5-of-another-mpi
hdf5-of-another-mpi:
	@echo "make: $(MPICC) is of $(MPI), but pkg-config's $(HDF5) is of $(OTHER_MPI): expected a parallel HDF5 of $(MPI) (Debian:" \
	    "libhdf5-$(MPI)-dev)" >&2; exit 2
$(OBJECTS) $(SUPPORT) $(TESTS:=.o): | $(if $(OTHER_MPI),hdf5-of-another-mpi)

$(B)/obj/%.o: src/%.c $(B)/flags $(B)/mpi
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC   $<")
	$(Q)$(CC) $(ALL_CFLAGS) -I$(B) -MMD -MP -c $< -o $@

# What these embed.
$(B)/obj/app/command/help.o: src/app/command/help.txt
$(B)/obj/app/report/template.o: $(wildcard src/app/report/*.html src/app/report/*.js)

$(LIBRARY): $(filter-out $(B)/obj/app/%,$(OBJECTS)) $(B)/flags $(B)/sources
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)

# A sanitiser's own functions come with the program.
$(SHARED): $(LIBRARY)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(SONAME) $(if $(filter asan,$(MODE)),,-Wl,-z,defs) \
	    -Wl,--whole-archive $< -Wl,--no-whole-archive $(LIBS) -o $@

# With all of the library, whose public functions plug-ins use.
$(PROGRAM): $(filter $(B)/obj/app/%,$(OBJECTS)) $(LIBRARY)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(ALL_CFLAGS) -rdynamic $(filter %.o,$^) -Wl,--whole-archive $(LIBRARY) -Wl,--no-whole-archive $(LIBS) $(POPT_LIBS) -o $@

$(B)/tests/%.o: tests/%.c $(B)/flags $(B)/mpi
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC   $<")
	$(Q)$(CC) $(ALL_CFLAGS) $(CHECK_CFLAGS) -Itests -I$(B) -MMD -MP -c $< -o $@

$(B)/tests/%: $(B)/tests/%.o $(LIBRARY)
	$(if $(Q),@echo "  LD   $@")
	$(Q)$(CC) $(ALL_CFLAGS) $(filter %.o,$^) $(filter %/support.a,$^) $(LIBRARY) $(LIBS) $(CHECK_LIBS) -o $@

# What tests share; a program takes of it what it calls.
$(B)/tests/support.a: $(SUPPORT) $(B)/support
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)

$(TESTS) $(BENCHES): $(B)/tests/support.a

# Ranks of tests wait as those of emass do.
$(filter $(B)/tests/mpi/%,$(TESTS)): $(B)/obj/app/process/yield.o

.SECONDARY: $(TESTS:=.o) $(BENCHES:=.o)
tests: $(TESTS) $(BENCHES)

help:
	@sed -n '1,/^[^#]/ s/^# \{0,1\}//p' Makefile

deps:
	$(Q).ci/install-deps $(if $(filter check,$(MAKECMDGOALS)),check,build)

# These two are whole journeys from a fresh clone: what they need is installed first, then make is
# started anew so that it sees the libraries, on all cores unless the user gave -j.
ALL_CORES = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
demo: deps
	$(Q)$(MAKE) --no-print-directory $(ALL_CORES) all
	$(Q)jobs/demo $(PROGRAM)

check: deps
	$(Q)$(MAKE) --no-print-directory $(ALL_CORES) all tests
	$(Q)$(MAKE) --no-print-directory check-built

check-built:
	$(Q)tests/check $(B)

check-fast: $(filter $(B)/tests/unit/% $(B)/tests/mpi/%,$(TESTS))
	$(Q)tests/check $(B) unit/ '-n 2'

check-slow:
	$(Q).ci/install-deps slow
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/check $(B) slow/

bench: all tests
	$(Q)tests/bench/run $(B)

comma := ,
bench-posteriordb: all build/bench/venv/ready
	$(Q)EMASS_STANLI=$$(echo build/bench/venv/lib/python3*/site-packages/stanli/_bin/libstanli.so) \
	    build/bench/venv/bin/python tests/bench/posteriordb.py $(PROGRAM) $(if $(ALL),--all --seeds 3 --timeout 300 \
	    --samplers 'hmc$(comma)nuts$(comma)diag$(comma)dense$(comma)nutpie$(comma)low rank') \
	    $(if $(CHECKOUT),--checkout '$(CHECKOUT)') --json build/bench/posteriordb$(if $(ALL),-all).json \
	    --markdown build/bench/posteriordb$(if $(ALL),-all).md --picture build/bench/posteriordb$(if $(ALL),-all).svg $(POSTERIORDB)

bench-overhead: all build/bench/venv/ready
	$(Q)EMASS_STANLI=$$(echo build/bench/venv/lib/python3*/site-packages/stanli/_bin/libstanli.so) \
	    tests/bench/overhead.py $(PROGRAM) $(OVERHEAD)

bench-tempering: all build/bench/venv/ready
	$(Q)build/bench/venv/bin/python tests/bench/tempering.py $(PROGRAM) $(TEMPERING)

bench-evidence: all build/bench/evidence-venv/ready
	$(Q)OMP_NUM_THREADS=1 build/bench/evidence-venv/bin/python tests/bench/evidence.py $(PROGRAM) $(EVIDENCE)

bench-verdict: all build/bench/venv/ready
	$(Q)build/bench/venv/bin/python tests/bench/verdict.py $(PROGRAM) --json build/bench/verdict.jsonl $(VERDICT)

# The library once more, with SMPI's mpi.h and serial HDF5, which it does not call; SCALE="--ranks 64 --chains-per-rank 1000".
bench-scale: private WRAPPED = $(foreach f,malloc calloc realloc posix_memalign free,-Wl,--wrap=$f)
bench-scale:
	$(Q).ci/install-deps scale
	$(Q)$(MAKE) --no-print-directory MPICC=cc B=build/smpi HDF5=hdf5-serial CHECK_LIBS="-shared -lsimgrid $(WRAPPED)" \
	    CPPFLAGS="-Itests/bench/scale/include $(CPPFLAGS)" build/smpi/tests/bench/scale/scale
	$(Q)tests/bench/scale.py build/smpi/tests/bench/scale/scale $(SCALE)

# Without TEST some documents of TRAIN are held out.
CORPUS ?= 20news
TRAIN_20news := 20news/nvdm2000.train.ldac.gz
TEST_20news := 20news/nvdm2000.test.ldac.gz
TOPICS_20news := --topics 50 --seconds 20
TRAIN_wiki7702 := wikipedia/wiki7702.ldac.xz
TOPICS_wiki7702 := --topics 100 --seconds 50 --documents 1000
ifndef TRAIN
bench-topics: TRAIN = $(addprefix $${EMASS_DATA:?}/,$(TRAIN_$(CORPUS)))
bench-topics: TEST = $(addprefix $${EMASS_DATA:?}/,$(TEST_$(CORPUS)))
bench-topics: TOPICS ?= $(TOPICS_$(CORPUS))
endif
bench-topics: all build/bench/topics-venv/ready
	$(Q)build/bench/topics-venv/bin/python tests/bench/topics.py $(PROGRAM) $(TRAIN) $(TEST) $(TOPICS) \
	    --json build/bench/topics.json --picture build/bench/topics.svg

bench-topic-priors: all analysis/venv/ready
	$(Q)analysis/venv/bin/python tests/bench/topic_priors.py $(PROGRAM) $(or $(TRAIN),$(error TRAIN=FILE is missing)) $(TEST) $(TOPICS)

bench-network: all build/bench/network-venv/ready
	$(Q)build/bench/network-venv/bin/python tests/bench/network.py $(PROGRAM)

build/bench/network-venv/ready build/bench/evidence-venv/ready: build/bench/%-venv/ready: tests/bench/%-requirements.txt
	$(Q)python3 -m venv $(@D)
	$(Q)$(@D)/bin/pip install --quiet --retries 10 --timeout 60 --disable-pip-version-check -r $<
	$(Q)touch $@

build/bench/topics-venv/ready: tests/bench/topics-requirements.txt
	$(Q)python3 -m venv build/bench/topics-venv
	$(Q)build/bench/topics-venv/bin/pip install --quiet --retries 10 --timeout 60 --disable-pip-version-check -r $<
	$(Q)touch $@

build/bench/venv/ready: tests/bench/requirements.txt
	$(Q)python3 -m venv build/bench/venv
	$(Q)build/bench/venv/bin/pip install --quiet --retries 10 --timeout 60 --disable-pip-version-check -r $<
	$(Q)touch $@

bench-pymc: all build/python-venv/ready
	$(Q)build/python-venv/bin/pip install --quiet --disable-pip-version-check nutpie==0.16.8
	$(Q)build/python-venv/bin/python tests/bench/pymc_gradients.py $(PROGRAM)

lint:
	$(Q)tests/lint $(B)

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

# What a program that uses the library is compiled and linked with: MPI's flags, as mpicc has them,
# and where the library is not found by itself, the way to it.
MPI_FLAGS = $(shell $(CC) -show 2>/dev/null)
INTO      = '$(DESTDIR)$(PREFIX)'
define PC
prefix=$(PREFIX)
libdir=$${prefix}/lib
includedir=$${prefix}/include

Name: emass
Description: MPI-parallel Bayesian sampling, for programs and for models in plug-ins
Version: $(VERSION)
Cflags: "-I$${includedir}" $(filter -I% -D%,$(MPI_FLAGS))
Libs: "-L$${libdir}" $(if $(filter /usr,$(PREFIX)),,"-Wl$(,)-rpath$(,)$${libdir}") -lemass $(filter -L% -l% -Wl%,$(MPI_FLAGS))
Libs.private: $(LIBS) -lpthread
endef
export PC
, := ,

install: all
	install -d $(INTO)/bin $(INTO)/lib/pkgconfig $(INTO)/include/emass/model $(INTO)/share/man/man1 \
	    $(INTO)/share/emass/jobs/slurm $(INTO)/share/emass/jobs/pbs $(INTO)/share/man/man7 $(INTO)/share/bash-completion/completions $(INTO)/share/zsh/site-functions
	install -m 755 $(PROGRAM) $(INTO)/bin/
	install -m 644 $(LIBRARY) $(SHARED) $(INTO)/lib/
	ln -sf $(SONAME) $(INTO)/lib/libemass.so
	install -m 644 include/emass/*.h $(INTO)/include/emass/
	install -m 644 include/emass/model/*.h $(INTO)/include/emass/model/
	install -m 644 jobs/README.md jobs/*.yaml jobs/*.csv jobs/*.json jobs/*.stan $(INTO)/share/emass/jobs/
	install -m 755 jobs/slurm/* $(INTO)/share/emass/jobs/slurm/
	install -m 755 jobs/pbs/* $(INTO)/share/emass/jobs/pbs/
	printf '%s\n' "$$PC" >$(INTO)/lib/pkgconfig/emass.pc
	src/app/command/manual page $(PROGRAM) >$(INTO)/share/man/man1/emass.1
	src/app/command/manual library $(PROGRAM) >$(INTO)/share/man/man7/emass-library.7
	src/app/command/manual bash $(PROGRAM) >$(INTO)/share/bash-completion/completions/emass
	src/app/command/manual zsh $(PROGRAM) >$(INTO)/share/zsh/site-functions/_emass

stanli:
	$(Q).ci/install-stanli $(dir $(B))lib/emass $(INTO)/lib/emass

data:
	$(Q)jobs/fetch-data

plots: analysis/venv/ready
	$(Q)analysis/venv/bin/python analysis/plot.py demo.h5

papers-topics: all analysis/venv/ready
	$(Q)PYTHONPATH=analysis analysis/venv/bin/python -m papers $(B) --folder build/papers --topics

papers-networks: all analysis/venv/ready
	$(Q)PYTHONPATH=analysis analysis/venv/bin/python -m papers $(B) --folder build/papers --networks $(if $(LIMIT),--limit $(LIMIT))

papers: all analysis/venv/ready
	$(Q)PYTHONPATH=analysis analysis/venv/bin/python -m papers $(B) --folder build/papers

analysis/venv/ready: analysis/requirements.txt
	$(Q)python3 -m venv analysis/venv
	$(Q)analysis/venv/bin/pip install --quiet --retries 10 --timeout 60 --disable-pip-version-check -r $<
	$(Q)touch $@

# PyMC, JAX, numba and polars: for tests of the package of Python.
build/python-venv/ready: tests/run/python-requirements.txt analysis/requirements.txt
	$(Q)python3 -m venv build/python-venv
	$(Q)build/python-venv/bin/pip install --quiet --retries 10 --timeout 60 --disable-pip-version-check -r $<
	$(Q)touch $@

# ArviZ 1, for a test that has it beside the packages of analysis/venv.
build/arviz1/ready: tests/run/arviz1-requirements.txt analysis/venv/ready
	$(Q)analysis/venv/bin/pip install --quiet --retries 10 --timeout 60 --disable-pip-version-check --upgrade --no-deps \
	    --target build/arviz1 --python-version 3.12 --ignore-requires-python --only-binary :all: -r $<
	$(Q)touch $@

# A broken link is an error.
guide: build/guide-venv/ready
	$(Q)analysis/guide/collect.py build/guide-pages
	$(Q)build/guide-venv/bin/mkdocs build --strict --config-file analysis/guide/mkdocs.yml
	$(Q)echo build/guide/index.html

build/guide-venv/ready: analysis/guide/requirements.txt
	$(Q)python3 -m venv build/guide-venv
	$(Q)build/guide-venv/bin/pip install --quiet --retries 10 --timeout 60 --disable-pip-version-check -r $<
	$(Q)touch $@

sdist:
	$(Q)jobs/wheel/build sdist build/wheel

wheel:
	$(Q).ci/install-deps wheel
	$(Q)jobs/wheel/build wheel build/wheel

clean:
	rm -rf build

-include $(OBJECTS:.o=.d) $(SUPPORT:.o=.d) $(TESTS:=.d) $(BENCHES:=.d)
