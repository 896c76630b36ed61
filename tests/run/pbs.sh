#!/usr/bin/env bash
# The script for PBS hands on names with blanks in them, and submits itself again after status 75.
# shellcheck disable=SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

script=$PWD/jobs/pbs/emass.pbs
cd "$scratch" || exit
# Stand-ins for emass and qsub, which write down their arguments, a line each.
cat >./emass <<'END'
#!/bin/sh
printf '%s\n' "$@" >"$SAID.emass"
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
    submit 0 "jobs/$1" 7
    [ "$(cat said.emass)" = "$(printf '%s\n' run "jobs/$1" --max-time 5m --resume --seed 7 --output "$2")" ] &&
        [ ! -e said.qsub ]
}

submits_again() {
    submit 75 'my heart.yaml' 7
    [ "$(cat said.qsub)" = "$(printf '%s\n' -v 'CONFIG=my heart.yaml,OPTIONS=--max-time 5m,SEED=7' jobs/pbs/emass.pbs)" ]
}

check 'a plain name' hands_on heart.yaml heart.seed7.h5
check 'a name with blanks' hands_on 'my  heart 2.yaml' 'my  heart 2.seed7.h5'
check 'status 75' submits_again
finish
