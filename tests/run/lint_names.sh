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
plain=(away found same whole)
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
    put plain.h "typedef struct $word {"
    finds 'names are' "plain.h:1:typedef struct $word" || missed+=" struct $word"
    put plain.h "static int $word(int n)"
    finds 'names are' 'plain.h:1:' || missed+=" $word()"
    put plain.h "    void (*$word)(int n);"
    finds 'names are' 'plain.h:1:' || missed+=" (*$word)"
    rm "$tree/src/base/plain.h"
    if [[ " ${plain[*]} " == *" $word "* ]]; then
        put "${word}_of.c" "static int ${word}_of(int n)"
        holds 'names are' || missed+=" (${word}_of is one)"
    else
        put "${word}_of.c" 'int em_window_size(int n);'
        finds 'names are' "src/base/${word}_of.c" || missed+=" ${word}_of.c"
        put plain.h "static int ${word}_of(int n)"
        finds 'names are' 'plain.h:1:' || missed+=" ${word}_of()"
        rm "$tree/src/base/plain.h"
    fi
    rm "$tree/src/base/${word}_of.c"
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

mkdir -p "$tree/src/io" "$tree/include/emass" && rm "$tree/src/base/plain.h" "$tree/include/plain.h"
check 'names of their own are no finding' holds 'have one name'
put plain.h 'typedef struct em_window {' '    int n;' '} em_window;'
printf '%s\n' '#include "base/plain.h"' >"$tree/src/io/plain.h"
check 'two headers have one name' finds 'no two files' 'src/base/plain.h src/io/plain.h have one name'
mv "$tree/src/io/plain.h" "$tree/src/io/plain.c"
check 'two sources have one name' finds 'no two files' 'src/base/plain.c src/io/plain.c have one name'
rm "$tree/src/io/plain.c"
printf '%s\n' '#pragma once' >"$tree/include/emass/plain.h"
check 'a header has the name of a public one' finds 'no two files' 'include/emass/plain.h src/base/plain.h have one name'
sed -i '1i #include "emass/plain.h"' "$tree/src/base/plain.h"
check 'which it may have if it includes that one' holds 'no two files'
rm "$tree/include/emass/plain.h"
for second in 'struct em_window {' 'typedef enum em_window {' 'typedef struct {'; do
    printf '%s\n' "$second" '    int n;' '} em_window;' >"$tree/src/io/other.c"
    check "two types have one name: $second" finds 'no two types' 'em_window is a type in src/base/plain.h src/io/other.c'
done
printf '%s\n' 'static struct {' '    int n;' '} em_window;' >"$tree/src/io/other.c"
check 'a variable is no type' holds 'no two types'
rm "$tree/src/io/other.c" "$tree/src/base/plain.h"

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
check 'a median of four lines is too short' finds 'the median function' 'has 4 lines, not 8 to 20'
check 'the measures are those of the files' measured
for ((i = 0; i < 3; i++)); do cp "$tree/src/base/long.c" "$tree/src/base/longer_$i.c"; done
check 'a median of sixty lines is too long' finds 'the median function' 'has 60 lines, not 8 to 20'
for ((i = 0; i < 3; i++)); do sed -i '3,45d' "$tree/src/base/longer_$i.c"; done
check 'and one of 17 is not' holds 'the median function'
finish
