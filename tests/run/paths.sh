#!/usr/bin/env bash
# Files may be named from any folder: every command, from the folder of the config, from that of the
# output, from one that has nothing to do with either, and by an absolute path; also when all of it
# was moved.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
sources=$(cd "$(dirname "$0")/../.." && pwd)
export SOURCE_DATE_EPOCH=0
mkdir -p "$scratch/all/project" "$scratch/all/results/deep" "$scratch/all/elsewhere/far" && cd "$scratch/all" || exit 1

awk 'BEGIN { print "a,b,y"; for (i = 0; i < 60; i++) print sin(i) "," cos(2 * i) "," i % 2 }' >project/rows.csv
awk 'BEGIN { for (d = 1; d <= 40; d++) for (w = 1 + d % 2; w <= 20; w += 2) print d, w, 1 + (d * w) % 3 }' >entries
printf '40\n20\n%s\n%s\n' "$(wc -l <entries)" "$(cat entries)" >project/docword.c.txt
awk 'BEGIN { for (v = 0; v < 20; v++) print "word" v }' >project/words
cat >project/rows.yaml <<'YAML'
model: {name: logistic, data: rows.csv, log_likelihood: true}
run: {chains: 2, warmup: 50, draws: 50}
output: {file: results/deep/rows.h5}
YAML
cat >project/words.yaml <<'YAML'
model: {name: lda, data: docword.c.txt, vocabulary: words, topics: 2}
sampler: {name: lda_gibbs}
run: {chains: 2, warmup: 10, draws: 10}
output: {file: results/deep/words.h5}
YAML

quiet() { limited "$emass" "$@" --quiet; }
check 'a run, named from above' quiet run project/rows.yaml
check 'one of topics' quiet run project/words.yaml
check 'another seed' quiet run project/rows.yaml --seed 2 --output results/deep/other.h5
cc -shared -fPIC "-I$sources/include" "$sources/tests/examples/line.c" -lm -o project/line.so
sed 's/^a,b,y/x,z,y/' project/rows.csv >project/line.csv
printf '%s\n' 'model: {name: line, library: ./line.so, data: line.csv}' 'run: {chains: 2, warmup: 50, draws: 50}' >project/start.yaml
(cat project/start.yaml && echo 'mass: {from: ../results/deep/start.h5}') >project/line.yaml
check 'a plug-in' quiet run project/start.yaml --output results/deep/start.h5
check 'one that begins with the mass of another run' quiet run project/line.yaml --output results/deep/line.h5

from() { # FOLDER COMMAND...: in a shell of its own
    (cd "$1" && "${@:2}")
}
coherent() { # FILE: each topic has its coherence
    limited "$emass" topics "$1" --words 5 >topics.txt 2>notes.txt || return 1
    cat topics.txt notes.txt
    [ ! -s notes.txt ] && [ "$(grep -cE '^ +[01]  0\.[0-9]+ +-?[0-9]\.[0-9]+ ' topics.txt)" = 2 ]
}
same() { # FILE...: all of them
    local file
    for file in "${@:2}"; do cmp "$1" "$file" || return 1; done
}
converted() {
    limited "$emass" convert "$1" table.h5 && [ -s table.h5 ] && rm table.h5
}
learned() { # CONFIG FILE: from the mass of FILE, an absolute path or one from the config's folder
    quiet run "$1" --output learned.h5 --overwrite --set "mass.from=$2" && rm learned.h5
}
goes_on() { # CONFIG FILE
    cp "$2" copy.h5 && quiet run "$1" --output copy.h5 --resume --set run.draws=60 2>said.txt &&
        grep -q 'extending .*copy.h5' said.txt && limited "$emass" verify copy.h5 --draws 60 && rm copy.h5 said.txt
}
reported() {
    limited "$emass" report "$1" --output page.html && grep -q 'beta' page.html && rm page.html
}
predicted() { # FILE DATA
    limited "$emass" predict "$1" --data "$2" --output new.h5 --overwrite && limited "$emass" summary new.h5 --group predictions >/dev/null &&
        rm new.h5
}
merged() { # FILE OTHER: what is made of both knows the data too
    mkdir -p made && limited "$emass" merge made/both.h5 "$1" "$2" && h5dump -a config_folder made/both.h5 | grep -F ".." &&
        predicted made/both.h5 "$(dirname "$1")/../../project/rows.csv" && rm -r made
}
differs() {
    local status=0
    limited "$emass" diff "$1" "$2" || status=$?
    [ "$status" = 1 ]
}

every_command() { # WHERE FOLDER RESULTS PROJECT: the last two as they are named from FOLDER
    local name=$1 folder=$2 results=$3 project=$4
    check "summary, $name" from "$folder" says 0 beta "$emass" summary "$results/rows.h5"
    check "report, $name" from "$folder" reported "$results/rows.h5"
    check "loo, $name" from "$folder" says 0 elpd "$emass" loo "$results/rows.h5"
    check "check, $name" from "$folder" says 0 'rows.csv' "$emass" check "$project/rows.yaml" --set output.file="$results/checked.h5"
    check "verify, $name" from "$folder" says 0 'no difference' "$emass" verify "$results/rows.h5" --ranks 2
    check "verify of topics, $name" from "$folder" says 0 'no difference' "$emass" verify "$results/words.h5"
    check "verify of a plug-in, $name" from "$folder" says 0 'no difference' "$emass" verify "$results/line.h5"
    check "topics, $name" from "$folder" coherent "$results/words.h5"
    check "predict, $name" from "$folder" predicted "$results/rows.h5" "$project/rows.csv"
    check "diff, $name" from "$folder" differs "$results/rows.h5" "$results/other.h5"
    check "merge, $name" from "$folder" merged "$results/rows.h5" "$results/other.h5"
    check "convert, $name" from "$folder" converted "$project/rows.csv"
    check "run --resume, $name" from "$folder" goes_on "$project/rows.yaml" "$results/rows.h5"
    check "mass.from, $name" from "$folder" learned "$project/rows.yaml" ../results/deep/rows.h5
    check "mass.from by its whole path, $name" from "$folder" learned "$project/rows.yaml" "$(cd "$folder" && cd "$results" && pwd)/rows.h5"
}
every_command 'from above' . results/deep project
every_command 'from the folder of the config' project ../results/deep .
every_command 'from the folder of the output' results/deep . ../../project
every_command 'from elsewhere' elsewhere/far ../../results/deep ../../project
mv "$scratch/all" "$scratch/moved" && cd "$scratch/moved" || exit 1
every_command 'by whole paths, moved' elsewhere/far "$PWD/results/deep" "$PWD/project"

# ---------------------------------------------------------------- what is in the file

named() { # FILE: where its config's paths start
    h5dump -a config_folder "$1" 2>/dev/null | sed -n 's/.*(0): "\(.*\)"$/\1/p'
}
no_path_of_the_machine() { ! grep -aqF "$scratch" results/deep/rows.h5; }
check 'the file names the folder as seen from its own' test "$(named results/deep/rows.h5)" = ../../project
check 'and no path of the machine' no_path_of_the_machine
same_elsewhere() { # the same places relative to each other, the same bytes
    mkdir -p again && cp -r project again && mkdir -p again/results/deep && from again quiet run project/rows.yaml &&
        same results/deep/rows.h5 again/results/deep/rows.h5
}
check 'the same bytes in another folder' same_elsewhere
if [ -w /dev/shm ] && far=$(mktemp -d /dev/shm/emass.XXXXXX); then
    trap 'rm -rf "$scratch" "$far"' EXIT
    nothing_shared() {
        quiet run project/rows.yaml --output "$far/rows.h5" && [ -z "$(named "$far/rows.h5")" ] &&
            from project says 0 'no difference' "$emass" verify "$far/rows.h5" &&
            says 0 'no difference' "$emass" verify "$far/rows.h5" --folder project &&
            ! limited "$emass" verify "$far/rows.h5" 2>said.txt && cat said.txt && grep -q -- "--folder" said.txt
    }
    check 'folders that share nothing are not named where bytes are to be the same' nothing_shared
    by_whole_path() {
        (unset SOURCE_DATE_EPOCH && quiet run project/rows.yaml --output "$far/rows.h5" --overwrite) &&
            [ "$(named "$far/rows.h5")" = "$PWD/project" ] && says 0 'no difference' "$emass" verify "$far/rows.h5"
    }
    check 'otherwise by the whole path' by_whole_path
fi
linked() { ln -s ../results/deep/rows.h5 elsewhere/link.h5 && says 0 'no difference' "$emass" verify elsewhere/link.h5; }
check 'a link to an output' linked
beside_its_data() { # moved beside the data, and all that the file names is gone
    mkdir -p lone && cp project/rows.csv results/deep/rows.h5 lone && mv project gone &&
        says 0 'no difference' "$emass" verify lone/rows.h5
}
check 'a file beside its data' beside_its_data
builtin_says_nothing() {
    printf 'model: {name: eight_schools}\nrun: {chains: 2, warmup: 20, draws: 20}\n' >schools.yaml
    quiet run schools.yaml && [ -z "$(named schools.h5)" ]
}
check 'a config without paths names no folder' builtin_says_nothing
finish
