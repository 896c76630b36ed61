#!/usr/bin/env bash
# The command line: exit statuses, failures of one line that leave nothing behind, help and lists.
# Writes TAP.   tests/run/cli.sh BUILD
# shellcheck disable=SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

work=$scratch/work
mkdir "$work"
cd "$work" || exit

report() { # WHAT WHY: passes when WHY is empty
    is_empty() { [ -z "$2" ] || { echo "$2" && false; }; }
    check "$1" is_empty "$@"
}

fails() { # STATUS TEXT COMMAND...
    local command="${*:3}"
    check "fails with $1: ${command/"$emass"/emass}" fails_with "$@"
}

# A success is on standard output alone, and once.
prints() { # TEXT COMMAND...
    local text=$1 why='' status=0 out err
    shift
    limited "$@" >"$work/.out" 2>"$work/.err" || status=$?
    out=$(cat "$work/.out") err=$(messages "$work/.err")
    [ "$status" = 0 ] || why+="exit status $status; "
    [ -z "$err" ] || why+="standard error: $err; "
    [ "$(grep -cF -- "$text" <<<"$out")" = 1 ] || why+="not one '$text'; "
    report "prints '$text': ${*/"$emass"/emass}" "${why:+$why$out}"
}

config() { # FILE SAMPLER-LINE
    printf 'model:\n  name: gaussian\nsampler:\n  name: hmc\n  %s\n' "$2" >"$1"
}

# ---- usage ----
fails 2 ', topics (see emass --help)' "$emass"
fails 2 'did you mean summary?' "$emass" sumary x.h5
fails 2 'see emass --help' "$emass" --frobnicate
for command in run check summary; do
    fails 2 'see emass' "$emass" $command
    fails 2 '--frobnicate' "$emass" $command --frobnicate x
done
fails 2 'cannot read missing.yaml: No such file or directory' "$emass" run missing.yaml
fails 2 'cannot read .' "$emass" check .
fails 2 'missing.h5' "$emass" summary missing.h5

# ---- the config ----
config good.yaml 'leapfrog_steps: 5'
config unknown.yaml 'leapfrogsteps: 5'
config type.yaml 'leapfrog_steps: many'
printf 'model: {name: gaussian\n' >syntax.yaml
head -c 2000000 /dev/zero | tr '\0' '#' >long.yaml
head -c 1000 /dev/zero >binary.yaml
: >empty.yaml
for command in run check; do
    fails 2 'unknown.yaml:5: unknown key sampler.leapfrogsteps; did you mean leapfrog_steps?' \
        "$emass" $command unknown.yaml
    fails 2 "type.yaml:5: sampler.leapfrog_steps: found 'many', expected an integer from 1 to" \
        "$emass" $command type.yaml
done
fails 2 'syntax.yaml:2: not YAML' "$emass" run syntax.yaml
fails 2 'long.yaml: longer than 1048576 bytes' "$emass" run long.yaml
fails 2 'binary.yaml: found a NUL byte' "$emass" run binary.yaml
fails 2 'empty.yaml:1: found nothing' "$emass" run empty.yaml
fails 2 "--set run.seed=x: run.seed: found 'x'" "$emass" run good.yaml --set run.seed=x
fails 2 'did you mean run.draws?' "$emass" run good.yaml --set draws=10
fails 2 "found 'bra', expected auto, bar, log or none" "$emass" run good.yaml --progress bra

# ---- help, version, lists ----
prints 'usage: emass COMMAND' "$emass" --help
prints 'usage: emass COMMAND' "$emass" help
prints 'usage: emass merge' "$emass" help merge
prints 'usage: emass merge' "$emass" merge -h
fails 2 "unknown command 'sumary'; did you mean summary?" "$emass" help sumary
prints 'emass 0.' "$emass" --version
for command in run summary check list; do
    prints "usage: emass $command" "$emass" $command --help
    prints 'Exit status: 0 done' "$emass" $command --help
done
wide=$(for command in $(emass_commands); do
    "$emass" "$command" --help | sed "s/^/$command: /" | grep -E '^[a-z]+: .{97}'
done)
report "help has no line that is wider than the others" "$wide"
for name in hmc logistic fisher; do
    prints "  $name " "$emass" list
done
prints 'a number from 0.01 to 0.999; default 0.8' "$emass" list samplers hmc
prints 'a path; must be given' "$emass" list models linear
prints 'source: ' "$emass" list mass fisher
prints '  init_radius ' "$emass" list run
prints 'model.prior_scale' "$emass" list keys
report 'no key is listed twice' "$("$emass" list keys | sort | uniq -d)"
fails 2 'did you mean samplers?' "$emass" list sampler
fails 2 'did you mean logistic?' "$emass" list models logitsic
fails 2 'unexpected' "$emass" list models logistic unexpected
fails 1 'cannot write to standard output' sh -c "exec $emass list >/dev/full"

fails 1 'cannot write to standard output' sh -c "exec $emass check good.yaml >/dev/full"
fails 1 'cannot write to standard output: No space left' sh -c "exec $emass check --ranks 2 good.yaml >/dev/full"
fails 2 'unknown.yaml:5: unknown key' sh -c "exec $emass check --ranks 2 unknown.yaml >/dev/full"

# ---- several ranks speak once ----
prints 'usage: emass COMMAND' mpirun -n 2 --oversubscribe "$emass" --help
prints 'sampler.name' mpirun -n 3 --oversubscribe "$emass" list samplers
fails 2 'unknown.yaml:5: unknown key' mpirun -q -n 2 --oversubscribe "$emass" run unknown.yaml
fails 2 'emass: cannot read missing.yaml' "$emass" run --ranks 2 missing.yaml
fails 2 'did you mean run?' mpirun -q -n 3 --oversubscribe "$emass" rn

# Nothing that Open MPI's threads may still be in is unloaded at the end (LD_DEBUG: the loader's own log).
report 'MPI ends with its components loaded' \
    "$(LD_DEBUG=files "$emass" check good.yaml 2>&1 >/dev/null | grep -E '(pml_ob1|coll_tuned).*destroying')"

# What one process does by itself is done without MPI, whose parts are not even looked for.
for alone in --help --version rn 'run --help' 'list models' 'summary none.h5' 'report none.h5' 'diff a.h5 b.h5'; do
    # shellcheck disable=SC2086
    report "$alone: without MPI" "$(LD_DEBUG=files "$emass" $alone 2>&1 | grep 'calling init.*mca_')"
done

# An end of MPI that never comes does not keep the program, nor its status.
printf '#include <unistd.h>\nint MPI_Finalize(void);\nint MPI_Finalize(void)\n{\n    for (;;)\n        pause();\n}\n' >"$work/never.c"
cc -shared -fPIC "$work/never.c" -o "$work/never.so"
never() { EMASS_FAULT=impatient:0 LD_PRELOAD=$work/never.so timeout "${EMASS_LIMIT:-900}" "$emass" "$@" >"$work/said" 2>&1; }
report 'MPI never ends' "$(never check good.yaml || echo $?)"
never check type.yaml
report 'MPI never ends, and there was a mistake' "$(echo $? | grep -vx 2)"
finish
