#!/usr/bin/env bash
# What a run says of draws that are not to be trusted: targets that defeat a sampler in one way each,
# and a sentence for each, on one rank and on three.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# Neal's funnel: v ~ N(0, 3), x_i ~ N(0, exp(v / 2)).
cat >funnel.c <<'C'
#include <emass/plugin.h>
#include <math.h>
enum { DIM = 6 };
static const em_field fields[] = {{0}};
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    const double v = theta[0], precision = exp(-v);
    (void)given;
    *log_p += -v * v / 18 - (DIM - 1) * v / 2;
    gradient[0] += -v / 9 - (DIM - 1) / 2.0;
    for (int i = 1; i < DIM; i++) {
        *log_p -= precision * theta[i] * theta[i] / 2;
        gradient[0] += precision * theta[i] * theta[i] / 2;
        gradient[i] -= precision * theta[i];
    }
    return EM_OK;
}
EMASS_PLUGIN({.name = "funnel", .options_size = sizeof(int), .fields = fields, .dim = DIM,
              .log_density_gradient = density});
C
cc -std=c17 -shared -fPIC -I"$project/include" funnel.c -o funnel.so -lm || exit 1
echo 'model: {name: funnel, library: ./funnel.so}' >funnel.yaml

go() { # RANKS FILE CONFIG ARGUMENT...: what it prints, into FILE.said
    limited mpirun -n "$1" "$emass" run "$3" --output "$2.h5" --overwrite --progress none "${@:4}" >"$2.said"
}

# Says PATTERN, and the same on three ranks, where the file is the same.
says() { # PATTERN CONFIG ARGUMENT...
    go 1 one "${@:2}" && go 3 three "${@:2}" || return 1
    cat one.said
    cmp one.said three.said && cmp one.h5 three.h5 && grep -qE -- "$1" one.said
}

# Interrupted at the start and, with luck, in one stage after another; gone on with elsewhere.
piecemeal() {
    local status limit
    go 1 whole funnel.yaml "$@" && rm -f parts.h5* || return 1
    for limit in 0 0.01 0.02 0.03 0.04; do
        status=0
        limited "$emass" run funnel.yaml --output parts.h5 --quiet --resume --max-time "$limit" "$@" || status=$?
        [ "$status" = 75 ] || return 1
    done
    limited mpirun -n 2 "$emass" run funnel.yaml --output parts.h5 --quiet --resume "$@" && cmp whole.h5 parts.h5
}

few=(--chains 12 --set run.draws=60)
check 'curvature that varies: nuts draws' says 'curvature varies, so that nuts draws' funnel.yaml "${few[@]}"
check 'with warmup of given length' says 'curvature varies, so that nuts draws' funnel.yaml "${few[@]}" --set run.warmup=400
check 'without room to tune again' says 'curvature varies, so that nuts draws' funnel.yaml "${few[@]}" --set run.warmup=200
check 'interrupted and gone on with' piecemeal "${few[@]}"
check 'a length that was asked for is kept' says '; T 2, ' funnel.yaml "${few[@]}" --set sampler.trajectory=2
finish
