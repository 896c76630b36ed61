#!/usr/bin/env bash
# What pip installs, where there is nothing but Debian 12 and python3-venv (debootstrap, root, a network;
# 2.5 GB): the wheel with Open MPI and with MPICH from PyPI and from Debian, and the source package with
# what it builds with. Each samples the eight schools on 4 ranks: the file is that of this build.
# shellcheck source=tests/run/lib.sh disable=SC2317
. tests/run/lib.sh
export SOURCE_DATE_EPOCH=0
folder=build/wheel root=$scratch/debian
compilers='gcc libc6-dev make pkg-config openmpi-bin libopenmpi-dev libhdf5-openmpi-dev libopenblas-dev liblapacke-dev
    libyaml-dev libpopt-dev libsleef-dev librandom123-dev zlib1g-dev liblzma-dev libxxhash-dev libutf8proc-dev libjansson-dev'

if [ "$(id -u)" != 0 ] || ! have debootstrap chroot unshare || ! unshare --mount true; then
    skip 'wheels and the source package' 'needs root and debootstrap'
    finish
fi

long() { # COMMAND...: of minutes on an idle machine
    EMASS_LIMIT=$((4 * EMASS_LIMIT)) limited "$@"
}

# pip there finds its registry, and certificates, as pip does here.
bootstraps() {
    limited debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm "$root" \
        "${EMASS_DEBIAN:-http://deb.debian.org/debian}" || return 1
    for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e "$file" ] || cp "$file" "$root$file"
    done
    cp "$folder"/dist/emass-* jobs/eight_schools.yaml "$root/root/"
}

# What is mounted there is seen by the command alone, and is gone with it.
inside() { # COMMAND...
    # shellcheck disable=SC2016 # of the shell in there
    root=$root long unshare --mount --propagation private sh -c '
        mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" && mount -t proc proc "$root/proc" &&
            cd "$root" && exec chroot . "$@"' sh env -C /root -u PIP_FIND_LINKS -u EMASS -u EMASS_LIBRARY -u OMPI_CC -u MPICH_CC \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

venv() { # NAME WHAT...
    local name=$1
    shift
    inside python3 -m venv "/$name" && inside "/$name/bin/pip" install --quiet --find-links /root "$@"
}

install() { # PACKAGE...: of Debian
    inside sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"' sh "$@"
}

sum_of() { # FILE
    md5sum <"$1" | cut -d ' ' -f 1
}

same() { # FILE: has the bytes of this build's
    cmp "$scratch/here.h5" "$1" && [ "$(sum_of "$1")" = "$sum" ]
}

samples() { # VENV [NAME=VALUE...]: the program, on the ranks that it starts
    local venv=$1
    shift
    rm -f "$root/root/out.h5"
    inside env "$@" "/$venv/bin/emass" run --ranks 4 eight_schools.yaml --output out.h5 --quiet && same "$root/root/out.h5"
}

samples_by_mpirun() { # VENV MPIRUN...
    local venv=$1
    shift
    rm -f "$root/root/out.h5"
    inside env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 \
        PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
        "$@" -n 4 "/$venv/bin/emass" run eight_schools.yaml --output out.h5 --quiet && same "$root/root/out.h5"
}

# The library in the process of Python, and in ranks that it starts.
python() { # VENV [NAME=VALUE...]
    local venv=$1
    shift
    cat >"$root/root/normal.py" <<'END'
import emass
model = emass.Model.from_function(lambda x: -0.5 * float(x @ x), 3, gradient=lambda x: -x)
sums = {float(model.sample(chains=4, draws=50, seed=1, ranks=n, progress=False).posterior.to_array().sum()) for n in (1, 2)}
assert len(sums) == 1, sums
END
    inside env "$@" "/$venv/bin/python" normal.py
}

# The model of the README, by the headers in the package.
# shellcheck disable=SC2016 # of Markdown
plugin() { # VENV
    sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$root/root/lighthouse.c"
    echo 'model: {name: lighthouse, library: ./lighthouse.so, red: [4.73, 0.45], white: [8.1, 9.0]}' >"$root/root/lighthouse.yaml"
    inside sh -c "cc -shared -fPIC -I \"\$(echo /$1/lib/python3*/site-packages/emass/_bin/include)\" lighthouse.c -o lighthouse.so" &&
        inside "/$1/bin/emass" check lighthouse.yaml
}

inside_says() { # TEXT COMMAND...: and exit status 2 or 1
    local text=$1
    shift
    ! inside "$@" >"$scratch/answer" 2>&1 && grep -F "$text" "$scratch/answer"
}

one_line() { # TEXT COMMAND...: nothing of the launcher beside it
    inside_says "$@" && [ "$(wc -l <"$scratch/answer")" = 1 ]
}

check 'make wheel' long make --silent wheel
check 'make sdist' long make --silent sdist
check 'a Debian 12' bootstraps
limited "$emass" run --ranks 4 jobs/eight_schools.yaml --output "$scratch/here.h5" --quiet
sum=$(sum_of "$scratch/here.h5")
echo "# this build: md5 $sum"

check 'the wheel is installed alone' venv alone --no-deps --no-index emass
check 'it says that there is no MPI' inside_says "found no libmpi.so.40 of Open MPI or libmpi.so.12 of MPICH: pip install" /alone/bin/emass --version
for kind in openmpi mpich; do
    check "emass[$kind]" venv "$kind" "emass[$kind]"
    check "it samples: md5 $sum, as this build" samples "$kind"
    check "on ranks of its mpirun" samples_by_mpirun "$kind" "/$kind/bin/mpirun"
    check "a wrong config is one line" one_line 'did you mean draws?' \
        "/$kind/bin/emass" run --ranks 2 eight_schools.yaml --set run.draw=3
    check "in Python" python "$kind"
done
check 'the source package says in one line what is missing' inside_says "missing (Debian's packages in brackets) make (make), pkg-config" \
    sh -c 'python3 -m venv /source && /source/bin/pip install --no-deps ./emass-*.tar.gz'
# shellcheck disable=SC2086 # words
check 'compilers and libraries' install $compilers mpich
check 'with them it is built' inside sh -c '/source/bin/pip install --quiet --no-deps ./emass-*.tar.gz'
check "it samples: md5 $sum, as this build" samples source
for kind in openmpi mpich; do
    check "the wheel with Debian's $kind: the same md5" samples alone EMASS_MPI=$kind
    check "on ranks of its mpirun" samples_by_mpirun alone mpirun.$kind
done
check "as R starts it, which names Debian's libraries first" \
    samples openmpi EMASS=/openmpi/bin/emass LD_LIBRARY_PATH=/usr/lib/R/lib:/usr/lib/x86_64-linux-gnu
check 'a model in C' plugin openmpi
check "in Python with Debian's MPICH, whose libmpi has another name" python mpich EMASS_MPI=/usr/lib/x86_64-linux-gnu/libmpich.so.12
finish
