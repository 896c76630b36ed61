#!/usr/bin/env bash
# The script for PBS hands on names with blanks in them, and submits itself again after status 75.
# shellcheck disable=SC2016,SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

script=$PWD/jobs/pbs/emass.pbs
cd "$scratch" || exit
# Stand-ins for emass and qsub, which write down their arguments, a line each.
cat >./emass <<'END'
#!/bin/sh
printf '%s\n' "$@" >"$SAID.emass"
[ "$STATUS" != 0 ] || echo 0 >"$EMASS_STATUS"
exit "$STATUS"
END
cat >./qsub <<'END'
#!/bin/sh
printf '%s\n' "$@" >"$SAID.qsub"
END
chmod +x emass qsub

submit() { # STATUS CONFIG SEED
    rm -f said.*
    env PATH="$scratch:$PATH" STATUS="$1" SAID=said PBS_O_WORKDIR="$scratch" EMASS_LAUNCHER=env \
        EMASS="$scratch/emass" CONFIG="$2" SEED="$3" OPTIONS='--max-time 5m' bash "$script"
}

hands_on() { # CONFIG OUTPUT
    submit 0 "jobs/$1" 7 || return 1
    [ "$(cat said.emass)" = "$(printf '%s\n' run "jobs/$1" --max-time 5m --resume --seed 7 --output "$2")" ] &&
        [ ! -e said.qsub ]
}

submits_again() {
    submit 75 'my heart.yaml' 7
    [ "$(cat said.qsub)" = "$(printf '%s\n' -v 'CONFIG=my heart.yaml,OPTIONS=--max-time 5m,SEED=7' "$script")" ]
}

# With --overwrite the first start replaces the output, and later ones go on.
cat >./qstat <<'END'
#!/bin/sh
printf 'Job Id: 1\n    run_count = %s\n' "${STARTS:-1}"
[ -z "${SCRIPT:-}" ] || printf '    Submit_arguments = -v CONFIG=a.yaml\n\t,OPTIONS=--max-time 5m %s\n    project = _pbs\n' "$SCRIPT"
END
chmod +x qstat
overwrites() { # STARTS MODE
    rm -f said.*
    env PATH="$scratch:$PATH" STATUS=75 STARTS="$1" SAID=said PBS_O_WORKDIR="$scratch" EMASS_LAUNCHER=env \
        EMASS="$scratch/emass" CONFIG=a.yaml SEED='' OPTIONS='--overwrite --max-time 5m' bash "$script"
    [ "$(cat said.emass)" = "$(printf '%s\n' run a.yaml --max-time 5m "$2")" ] &&
        [ "$(cat said.qsub)" = "$(printf '%s\n' -v 'CONFIG=a.yaml,OPTIONS=--max-time 5m,SEED=' "$script")" ]
}
# PBS runs a copy; the script beside which emass lies is the one that was submitted.
submits_its_own() { # SCRIPT EXPECTED
    rm -f said.*
    mkdir -p site/share/emass/jobs/pbs site/bin spool
    cp "$script" site/share/emass/jobs/pbs/emass.pbs && cp "$script" spool/1.SC && cp emass site/bin/
    env PATH="$scratch/tools:/usr/bin:/bin" STATUS=75 SCRIPT="$1" SAID=said PBS_O_WORKDIR="$scratch" \
        EMASS_LAUNCHER=env CONFIG=a.yaml bash spool/1.SC
    [ -s said.emass ] && [ "$(tail -n 1 said.qsub)" = "$2" ]
}
mkdir tools && cp qsub qstat tools
# The status that a run has written instead of ending with it.
stops_quietly() {
    printf '#!/bin/sh\necho 75 >"$EMASS_STATUS"\n' >quiet && chmod +x quiet
    rm -f said.*
    env PATH="$scratch:$PATH" SAID=said PBS_O_WORKDIR="$scratch" EMASS_LAUNCHER=env PBS_JOBID=7.host \
        EMASS="$scratch/quiet" CONFIG=a.yaml bash "$script"
    [ "$?" = 75 ] && [ -s said.qsub ] && [ ! -e .emass-7.host.status ]
}
# A launcher that ends with 0 though no rank has started.
never_launched() {
    local status=0
    rm -f said.*
    env PATH="$scratch:$PATH" SAID=said PBS_O_WORKDIR="$scratch" EMASS_LAUNCHER=true \
        EMASS="$scratch/emass" CONFIG=a.yaml bash "$script" 2>said.error || status=$?
    [ "$status" = 1 ] && [ ! -e said.qsub ] && grep 'the run did not finish' said.error
}

check 'a launcher that started nothing' never_launched
check '--overwrite at the first start' overwrites 1 --overwrite
check 'not when PBS starts it again' overwrites 2 --resume
check 'a status in a file' stops_quietly
check 'a script of another folder' submits_its_own site/share/emass/jobs/pbs/emass.pbs \
    "$scratch/site/share/emass/jobs/pbs/emass.pbs"
check 'a plain name' hands_on heart.yaml heart.seed7.h5
check 'a name with blanks' hands_on 'my  heart 2.yaml' 'my  heart 2.seed7.h5'
check 'status 75' submits_again
finish
