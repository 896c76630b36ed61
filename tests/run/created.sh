#!/usr/bin/env bash
# SOURCE_DATE_EPOCH is read once, by rank 0: known to some ranks only it does not part them, and what
# is no time is one line.
# shellcheck disable=SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

cd "$scratch" || exit
command -v h5dump >/dev/null || { skip "SOURCE_DATE_EPOCH" "no h5dump (hdf5-tools)"; finish; }
printf 'model: {name: gaussian}\nsampler: {name: hmc}\nrun: {chains: 3, warmup: 20, draws: 20}\n' >g.yaml
# The variable in the environment of one rank alone.
cat >only <<'END'
#!/bin/sh
rank=$1
shift
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != "$rank" ] || export SOURCE_DATE_EPOCH=86400
exec "$@"
END
chmod +x only

created() { # FILE
    h5dump -a /created_at "$1" | grep -o '[0-9]*-[0-9]*-[0-9]*T[0-9:]*Z'
}

known_to() { # RANK EXPECTED-DATE EXPECTED-RANKS-ATTRIBUTE
    limited mpirun -n 3 --oversubscribe ./only "$1" "$emass" run g.yaml --output "$1.h5" \
        --progress none --quiet || return 1
    created "$1.h5" | grep "$2" || return 1
    [ "$(h5dump -A "$1.h5" | grep -c 'ATTRIBUTE "ranks"')" = "$3" ]
}

is_refused() { # RANKS VALUE...
    local ranks=$1 value
    shift
    for value; do
        SOURCE_DATE_EPOCH=$value limited mpirun -q -n "$ranks" --oversubscribe "$emass" run g.yaml \
            --output new.h5 >out 2>err
        [ $? = 2 ] && [ ! -s out ] && [ ! -e new.h5 ] &&
            grep '^emass: ' err >line && [ "$(wc -l <line)" = 1 ] &&
            grep -F "SOURCE_DATE_EPOCH: found '$value', expected seconds since 1970" line || return 1
    done
}

is_taken() { # SECONDS DATE
    SOURCE_DATE_EPOCH=$1 "$emass" run g.yaml --output "time$1.h5" --progress none --quiet &&
        created "time$1.h5" | grep -Fx "$2"
}

check 'rank 0 alone knows it' known_to 0 1970-01-02T00:00:00Z 0
check 'rank 1 alone knows it' known_to 1 "$(date -u +%Y-%m-)" 1
check 'what is no number of seconds is refused' is_refused 1 '' ' 5' -1 1e9 12x 0x10
check 'what is beyond the calendar is refused' is_refused 2 99999999999999999 9223372036854775808
check 'the first second' is_taken 0 1970-01-01T00:00:00Z
check 'a time far away' is_taken 253402300799 9999-12-31T23:59:59Z
finish
