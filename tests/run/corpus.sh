#!/usr/bin/env bash
# Corpora: one content from every form of file, by any number of ranks; converted, and streamed where
# they do not fit the memory.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# 3000 documents of 200 words, the first and the last ones empty, and one in six between; some have
# so many words that ranges of bytes end within them. As LDA-C and as docword, blank lines in it.
awk 'function below(n) { seed = (seed * 16807) % 2147483647; return seed % n }
    BEGIN {
        seed = 5; n_entry = 0
        for (d = 1; d <= 3000; d++) {
            line = ""; m = 0
            n = d < 40 || d > 2950 || d % 6 == 0 ? 0 : d % 50 == 1 ? 190 : 8
            for (v = 0; v < 200; v++) if (below(200) < n) {
                count = 1 + below(3); m++; n_entry++
                line = line " " v ":" count
                triple = triple d " " v + 1 " " count "\n" (below(40) ? "" : "\n")
            }
            print m line >"c.ldac"
        }
        printf "3000\n200\n%d\n%s", n_entry, triple >"c.docword"
        for (v = 0; v < 200; v++) print "word" v >"words"
    }'
gzip -k c.docword
gzip -k c.ldac
[ -s c.docword ] || exit 1

convert() { "$emass" convert "$@"; }
same_file() { # FORM...: a file converted from each is the same
    local form
    convert c.ldac --vocabulary words whole.h5 >whole.txt || return 1
    cat whole.txt
    grep -q '^# documents  3000, ' whole.txt || return 1
    for form in "$@"; do
        limited mpirun -n 2 "$emass" convert "$form" --vocabulary words --overwrite other.h5 >other.txt || return 1
        [ "$(grep hash other.txt)" = "$(grep hash whole.txt)" ] || return 1
    done
}
check 'one hash from all forms' same_file c.docword c.docword.gz c.ldac.gz

cat >run.yaml <<'YAML'
model: {name: lda, data: data, topics: 7}
sampler: {name: lda_gibbs}
run: {chains: 2, warmup: 8, draws: 6}
output: {flush_every: 3}
YAML
# Named alike, so that only the content can make a difference.
run() { # RANKS SHARDS FORM OUTPUT ARGUMENT...
    local n=$1 shards=$2 form=$3 out=$4
    shift 4
    rm -f data "$out" words_of_run
    ln "$form" data
    limited mpirun -n "$n" "$emass" run run.yaml --set run.shards="$shards" --quiet --output "$out" "$@"
}
same() { # RANKS SHARDS FORM ARGUMENT...
    run "$1" "$2" "$3" other.out.h5 "${@:4}" && h5diff whole.out.h5 other.out.h5 posterior &&
        h5diff whole.out.h5 other.out.h5 averages
}
if have h5diff; then
    check 'a run from LDA-C' run 1 1 c.ldac whole.out.h5 --set model.vocabulary=words
    check 'docword on 3 shards' same 3 3 c.docword --set model.vocabulary=words
    check 'docword on 4 ranks, 2 shards' same 4 2 c.docword --set model.vocabulary=words
    check 'packed docword on 3 shards' same 3 3 c.docword.gz --set model.vocabulary=words
    check 'HDF5 on 2 shards' same 2 2 whole.h5
    check 'streamed' same 1 1 whole.h5 --set model.stream=true --set model.scratch=.
    check 'streamed on 3 shards' same 3 3 whole.h5 --set model.stream=true
else
    skip 'runs from all forms' 'no h5diff'
fi

stopped() { # streamed, stopped, resumed on other ranks
    local status=0
    rm -f parts.h5*
    run 2 2 whole.h5 parts.h5 --set model.stream=true --max-time 0 || status=$?
    [ "$status" = 75 ] && limited mpirun -n 3 "$emass" run run.yaml --set run.shards=3 --quiet \
        --output parts.h5 --resume --set model.stream=true || return 1
    h5diff whole.out.h5 parts.h5 posterior && h5diff whole.out.h5 parts.h5 averages
}
have h5diff && check 'streamed, stopped and resumed' stopped

# Coherence is of documents, wherever they are.
tells_the_same() {
    run 1 1 whole.h5 held.h5 && run 1 1 whole.h5 streamed.h5 --set model.stream=true &&
        "$emass" topics held.h5 >held.txt && "$emass" topics streamed.h5 >streamed.txt &&
        cmp held.txt streamed.txt && ! grep ' - ' held.txt
}
check 'topics of a streamed corpus, with their coherence' tells_the_same

printf '1.5,2\n3,4\n' >table.csv
"$emass" convert table.csv table.h5 >table.txt
check 'text is not streamed' refused 'c.ldac: found text, expected the HDF5 file' \
    "$emass" run run.yaml --output bad.h5 --set model.stream=true --set model.data=c.ldac
check 'a table is no corpus' refused "found a table, expected a corpus" \
    "$emass" run run.yaml --output bad.h5 --set model.data=table.h5
printf '1 0:1\n2 5:1 x\n' >bad.ldac
tac words >drow
convert c.docword --vocabulary drow other_words.h5 >other.txt
check 'a test corpus of words in another order' refused \
    "other_words.h5: found word 0 'word199', expected 'word0' as in whole.h5" \
    "$emass" run run.yaml --output bad.h5 --set model.data=whole.h5 --set model.test=other_words.h5
check 'and new documents of such' refused \
    "other_words.h5: found word 0 'word199', expected 'word0' as in held.h5" \
    "$emass" topics held.h5 --documents other_words.h5
check 'a bad corpus is not converted' refused "bad.ldac:2: found 'x', expected id:count" \
    "$emass" convert bad.ldac --format lda-c bad.h5
{ cat words && echo more; } >longer
{
    echo '%%MatrixMarket matrix coordinate integer general'
    head -n 3 c.docword | tr '\n' ' '
    echo
    sed 1,3d c.docword
} >c.mtx
for form in c.docword c.mtx; do
    check "a vocabulary of more words than the header of $form says" refused ' found 200 words, expected 201 (the words of the vocabulary)' \
        "$emass" convert "$form" --vocabulary longer bad.h5
done
check 'LDA-C has no header: words may be missing in it' convert c.ldac --vocabulary longer longer.h5
check 'a scratch folder that is not there' refused 'no-such-folder: no scratch file' \
    "$emass" run run.yaml --output bad.h5 --set model.data=whole.h5 --set model.stream=true \
    --set model.scratch=no-such-folder
[ ! -e bad.h5 ] || check 'nothing was written' false
finish
