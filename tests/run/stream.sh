#!/usr/bin/env bash
# A corpus ten times larger than memory is sampled from its file: within the address space that a tiny one
# needs and 4 MB more. EMASS_STREAM=all: ten times larger than all of that address space.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
room=24576 # kB

# Documents of 100 different words, one in ten twice; pieces of 2000, about 1 MB as text.
awk 'BEGIN {
    srand(3)
    for (d = 0; d < 2000; d++) {
        v = 0; s = ""
        for (j = 0; j < 100; j++) { v += 1 + int(17 * rand()); s = s " " v ":" 1 + (rand() < 0.1) }
        print 100 s
    }
}' >piece
tokens=$(awk '{ for (i = 2; i <= NF; i++) { split($i, p, ":"); n += p[2] } } END { print n }' piece)
cat >run.yaml <<'YAML'
model: {name: lda, data: tiny.h5, topics: 20, scratch: ., stream: true}
sampler: {name: lda_gibbs}
run: {chains: 1, warmup: 1, draws: 1}
YAML

limit=4000000 # kB of address space
export MALLOC_ARENA_MAX=1 # threads of MPI map up to 128 MB each for their own, or, where they cannot, do without
under() { # LIMIT COMMAND...
    (ulimit -v "$1" && shift && limited "$@")
}
sample() { # LIMIT FILE [SETTING]
    under "$1" "$emass" run run.yaml --quiet --overwrite --output out.h5 --set model.data="$2" "${@:3}"
}
# What a run of a tiny corpus needs at least, to the next MB.
measure() {
    local low=0 high=$limit middle
    sample "$limit" tiny.h5 || return 1
    while [ $((high - low)) -gt 1024 ]; do
        middle=$(((low + high) / 2))
        if sample "$middle" tiny.h5 2>/dev/null; then high=$middle; else low=$middle; fi
    done
    limit=$high
}
# Held, a word of a document takes 8 bytes, with 1.1 tokens, and a token 2 for the one chain and 2 to be saved: 11 bytes
# a token. Streamed, documents take 20.
grow() {
    local memory=$room pieces
    [ "${EMASS_STREAM:-}" != all ] || room=262144 memory=$((limit + room))
    pieces=$((10 * memory * 1024 / (11 * tokens) + 1))
    for _ in $(seq $pieces); do cat piece; done >large.ldac
    ln large.ldac large.text
    echo "# $((pieces * tokens / 1000)) thousand tokens; $room kB more than the $limit kB of a tiny corpus"
}
convert() { # by the same limit
    under $((limit + room)) "$emass" convert large.ldac --format lda-c large.h5 && rm large.ldac
}
fits() {
    sample $((limit + room)) large.h5
}
held() { # one line says so
    local status=0
    sample $((limit + room)) large.h5 --set model.stream=false 2>said.txt || status=$?
    cat said.txt
    [ "$status" -gt 0 ] && [ "$(grep -c '^emass: ' said.txt)" = 1 ] && grep -q memory said.txt
}
topics() { # of a run on text, which had more room
    sample unlimited large.text --set model.stream=false --set model.scratch=null --set run.draws=5 &&
        under $((limit + room)) "$emass" topics out.h5 >large.txt 2>&1 && ! grep -e ' - ' -e note: large.txt
}
long_documents() { # 400 of 20,000 words: batches of as many short ones would have 128 MB of these
    awk 'BEGIN { for (d = 0; d < 400; d++) { printf "20000"; for (v = 0; v < 20000; v++) printf " %d:1", v; print "" } }' >long.ldac
    "$emass" convert long.ldac --format lda-c long.h5 && sample $((limit + room)) long.h5 --set model.topics=2 &&
        under $((limit + room)) "$emass" topics out.h5 >long.txt 2>&1 && ! grep note: long.txt &&
        under $((limit + room)) "$emass" topics out.h5 --documents long.h5 --output mixtures.h5
}
if [ "${MODE:-}" = asan ]; then
    skip 'streaming' 'a sanitized build needs all of the address space'
    finish
fi
cp piece tiny.ldac
check 'a tiny corpus is converted' "$emass" convert tiny.ldac --format lda-c tiny.h5
check 'what it needs' measure
grow
check 'a large one is converted within that' convert
check 'streamed, ten times what there is more is sampled' fits
check 'held, it does not fit' held
check 'nor do long documents need more' long_documents
check 'text: topics and their coherence within that' topics
finish
