#!/usr/bin/env bash
# tests/lint finds each word of earlier versions, as the name of a file, of a type, in the name of a function
# and in prose, and the measures that it prints are those of the files that it is given.   lint_names.sh BUILD
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
lint=$(cd "$(dirname "$0")/.." && pwd)/lint
tree=$scratch/tree
mkdir -p "$tree"/{tests/{unit,mpi,stat,support,bench,run,slow,examples,fuzz},src/base,include,analysis,jobs} && cp "$lint" "$tree/tests/lint"
: >"$tree/README.md"

finds() { # RULE TEXT: the rule does not hold, and the reason has the text
    local said
    said=$("$tree/tests/lint" "$build" "$1")
    [ $? = 1 ] && [[ $said == "not ok 1 - "*"$2"* ]]
}

holds() { # RULE
    "$tree/tests/lint" "$build" "$1" >"$scratch/lint.txt"
}

put() { # NAME TEXT...: a file of the room base
    printf '%s\n' "${@:2}" >"$tree/src/base/$1"
}

types=(addends apart arrive away climb course deal explore feed fits flagged found gate guard hand_out harvest holders look
    mates meeting piece place plant rescue room said same scout seal show shown slopes stage story stretch tally team tempo
    tune undo watch whole)
parts=(addends arrive climb course deal dealt explore feed flagged gate guard harvest holders look mates meeting place plant room said
    scout seal story stretch tally team tempo undo)
prose=(addend arrival climbing dealt flagged gated harvested mates meeting planted rescued scouts stories stretches tallies tempo)

put plain.c '/* A window of draws. */' 'int em_window_size(int n)' '{' '    return n;' '}'
check 'plain names are no finding' holds 'names are'
check 'nor is plain prose' holds 'texts use'
missed=
for word in "${types[@]}"; do
    put "$word.c" 'int em_window_size(int n);'
    finds 'names are' "src/base/$word.c" || missed+=" $word.c"
    rm "$tree/src/base/$word.c"
    put plain.h "typedef struct em_$word em_$word;"
    finds 'names are' "plain.h:1:typedef struct em_$word" || missed+=" em_$word"
done
put plain.h 'typedef struct em_order em_order;'
finds 'names are' 'plain.h:1:' || missed+=' em_order'
for word in "${parts[@]}"; do
    put plain.h "int em_window_$word(int n);"
    finds 'names are' 'plain.h:1:' || missed+=" em_window_$word"
done
for word in dealt n_piece piece_size; do
    put plain.h "struct { bool $word; };"
    finds 'names are' 'plain.h:1:' || missed+=" $word"
done
rm "$tree/src/base/plain.h"
mkdir "$tree/src/exchange"
finds 'names are' 'src/exchange' || missed+=' exchange/'
rmdir "$tree/src/exchange"
check "each word is found in a name${missed:+, but not $missed}" test -z "$missed"
for word in "${prose[@]}"; do
    for file in src/base/plain.h include/plain.h analysis/plain.py jobs/plain.md README.md tests/slow/plain.sh; do
        printf 'A sentence about %s here.\n' "$word" >"$tree/$file"
        finds 'texts use' "$file:1:" || missed+=" $word in $file"
        : >"$tree/$file"
    done
done
check "each word is found in prose${missed:+, but not $missed}" test -z "$missed"

{
    echo 'int em_long(int n)' && echo '{'
    for ((i = 0; i < 58; i++)); do echo '    n++;'; done
    echo '}'
} >"$tree/src/base/long.c"
check 'a function of 61 lines is too long' finds 'no file over' 'long.c:1: a function of 61 lines'
sed -i '3d' "$tree/src/base/long.c"
check 'and one of 60 is not' holds 'no file over'
# Functions of 5 (plain.c) and of 60 lines: the median is the lower one.
measured() {
    "$tree/tests/lint" "$build" measures | grep -qx '# functions: 2, median 4 lines, longest 60, of five lines or fewer 1'
}
check 'the measures are those of the files' measured
finish
