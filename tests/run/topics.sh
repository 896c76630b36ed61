#!/usr/bin/env bash
# Topic models: one file on any number of ranks and shards, stopped and resumed on others, topics
# that were put in are found, and bad corpora are refused with one line.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# 400 documents of two of five topics, each of twelve words of its own; every tenth word is any word.
corpus() { # SEED DOCUMENTS
    awk -v seed="$1" -v documents="$2" '
        function below(n) { seed = (seed * 16807) % 2147483647; return seed % n }
        BEGIN {
            for (d = 0; d < documents; d++) {
                n = 20 + below(60); a = below(5); b = below(5); m = 0; line = ""
                split("", count)
                for (j = 0; j < n; j++) {
                    k = below(10) < 7 ? a : b
                    count[below(10) ? 12 * k + below(12) : below(60)]++
                }
                for (w = 0; w < 60; w++) if (w in count) { m++; line = line " " w ":" count[w] }
                print m line
            }
        }'
}
corpus 7 400 | gzip >train.ldac.gz
corpus 8 60 >test.ldac
awk 'BEGIN { for (v = 0; v < 60; v++) print "word" v }' >words
cat >run.yaml <<'YAML'
model:
  {name: lda, data: train.ldac.gz, vocabulary: words, test: test.ldac, test_every: 7, topics: 5,
   alpha: learned, beta: learned, store_phi: true, fold_in: both}
sampler: {name: lda_gibbs}
run: {chains: 2, warmup: 40, draws: 60}
output: {flush_every: 20}
YAML

go() { # RANKS SHARDS FILE ARGUMENT...
    local n=$1 shards=$2 file=$3
    shift 3
    limited mpirun -n "$n" "$emass" run run.yaml --set run.shards="$shards" --quiet \
        --output "$file" --resume "$@"
}

same() { # RANKS SHARDS
    rm -f other.h5*
    go "$1" "$2" other.h5 && cmp whole.h5 other.h5
}

# Half the draws on some ranks, the rest on others, and more topics than are looked at all at once.
in_parts() { # SETTING...
    local options=() setting
    for setting in "$@"; do options+=(--set "$setting"); done
    rm -f parts.h5* reference.h5*
    go 1 1 reference.h5 "${options[@]}" && go 3 3 parts.h5 "${options[@]}" --set run.draws=25 &&
        go 2 1 parts.h5 "${options[@]}" && cmp reference.h5 parts.h5
}

stopped_in_warmup() {
    local status=0
    rm -f parts.h5*
    go 2 2 parts.h5 --max-time 0 || status=$?
    [ "$status" = 75 ] && go 2 1 parts.h5 && cmp whole.h5 parts.h5
}

check 'a run on one rank' go 1 1 whole.h5
check 'the same bytes on 2 ranks' same 2 1
check 'the same bytes on 2 shards' same 2 2
check 'the same bytes on 3 shards' same 3 3
check 'the same bytes on 4 shards' same 4 4
check 'the same bytes on 2 groups of 2 shards' same 4 2
check 'parts on other ranks and shards' in_parts
says_who_distributes() {
    limited mpirun -n 2 "$emass" check run.yaml --set run.shards=2 >plan.txt &&
        grep -q '^# shards     2, as the model distributes' plan.txt
}
check 'the plan does not say that shards hold nothing' says_who_distributes
check 'parts of many topics, phi averaged only' in_parts model.topics=300 model.store_phi=false \
    run.draws=30 run.warmup=10
check 'stopped in warmup' stopped_in_warmup

# ---- what is found ----

# The twelve words of a topic are its most probable ones, for each of the five.
found() {
    h5dump -d /averages/phi -y -w 0 whole.h5 | tr -d ' \n' | grep -o 'DATA{[^}]*' |
        head -n 1 | sed 's/DATA{//' | tr , '\n' >phi && [ "$(wc -l <phi)" = 600 ] || return 1
    awk '{ phi[NR - 1] = $1 }
        END {
            for (row = 0; row < 10; row++) {
                best = -1
                for (block = 0; block < 5; block++) {
                    sum = 0
                    for (v = 0; v < 12; v++) sum += phi[60 * row + 12 * block + v]
                    if (sum > best) { best = sum; which = block }
                }
                seen[int(row / 5) "," which] = 1
                if (best < 0.8) { print "topic", row, "has", best, "of one block"; exit 1 }
            }
            n = 0; for (i in seen) n++
            exit n != 10
        }' phi
}
if have h5dump; then
    check 'the topics that were put in are found, by both chains' found
else
    skip 'the topics that were put in are found' 'no h5dump'
fi

summary_has() { "$emass" summary whole.h5 | grep -q "$1"; }
check 'the summary has the perplexity' summary_has '^perplexity  *[12][0-9]'
check 'and topics in the order of their sizes' summary_has '^topic_share\[4\]'
check 'phi is stored on request' summary_has '^phi\[0,word0\]'

tells_topics() {
    "$emass" topics whole.h5 --words 12 >topics.txt && [ "$(grep -c ' 2/2 ' topics.txt)" = 5 ] &&
        ! grep ' - ' topics.txt && grep -q '^Held-out perplexity of each chain.* [12][0-9]' topics.txt &&
        awk '/ 2\/2 / {
            delete n
            for (i = 5; i <= NF; i++) n[int(substr($i, 5) / 12)]++
            most = 0
            for (block in n) if (n[block] > most) most = n[block]
            if (most < 11) bad++
        } END { exit bad > 0 }' topics.txt
}
# Folded in by Gibbs the score is about that by EM: both are printed, with what they are.
both_scores() {
    "$emass" topics whole.h5 | awk '/^Held-out/ { score[++n] = $NF } /steps of EM/ { em++ } /own Gibbs/ { gibbs++ }
        END { exit !(n == 2 && em == 1 && gibbs == 1 && score[2] > 0.9 * score[1] && score[2] < 1.1 * score[1]) }'
}
mixes() { # [OPTION...] two topics a document, about seven to three: mixtures sum to one, and few topics hold most
    "$emass" topics whole.h5 --documents test.ldac "$@" >mixtures.csv && awk -F, 'NR > 1 {
        sum = top = second = 0
        for (i = 2; i <= NF; i++) {
            sum += $i
            if ($i > top) { second = top; top = $i } else if ($i > second) second = $i
        }
        if (NF != 6 || sum < 0.999 || sum > 1.001) bad++
        held += top + second
    } END { exit bad || NR != 61 || held / 60 < 0.8 }' mixtures.csv
}
words_csv() { # five topics of twelve words, whose probabilities fall; the first line names the columns
    "$emass" topics whole.h5 --words 12 --csv | awk -F, 'NR == 1 { bad += $0 != "topic,share,npmi,chains,word,probability" }
        NR > 1 { if ($1 == last && $6 > p) bad++
            last = $1; p = $6; n[$1]++; bad += NF != 6 || $4 != 2 }
        END { for (k in n) bad += n[k] != 12; exit bad || NR != 61 }'
}
files_of_tables() { # mixtures as they are printed, topics whose probabilities sum to one; a file is not replaced
    local status=0
    "$emass" topics whole.h5 --documents test.ldac >mixtures.csv && "$emass" topics whole.h5 --documents test.ldac --output mixtures.h5 &&
        "$emass" topics whole.h5 --output topics.h5 && h5dump -w 0 -y -d /table/value topics.h5 | tr -d ' ' | grep '^[0-9]' |
        awk -F, '{ sum = 0; for (i = 1; i <= 60; i++) sum += $i; bad += NF < 60 || sum < 0.999 || sum > 1.001 }
            END { exit bad || NR != 5 }' &&
        h5dump -w 0 -y -d /table/value mixtures.h5 | tr -d ' ' | grep '^[0-9]' >rows.txt &&
        awk -F, 'NR == FNR { if (FNR > 1) for (i = 2; i <= NF; i++) x[++n] = $i; next }
            { for (i = 1; i <= 5; i++) if ((x[++m] - $i) ^ 2 > 1e-10) bad++ } END { exit bad || m != n || n != 300 }' mixtures.csv rows.txt ||
        return 1
    "$emass" topics whole.h5 --documents test.ldac --output mixtures.h5 2>said.txt || status=$?
    [ "$status" = 2 ] && grep -q 'mixtures.h5: found a file' said.txt && ! ls mixtures.h5.*.part 2>/dev/null || return 1
    "$emass" topics whole.h5 --csv --html x.html 2>said.txt || status=$?
    [ "$status" = 2 ] && grep -q 'found two of' said.txt && [ ! -e x.html ]
}
# Corpora in text are read as those in HDF5 are: the same topics, coherence and mixtures, to the last byte.
same_of_text() {
    local form fold
    gzip -cd train.ldac.gz >train.ldac && gzip -k test.ldac && awk 'NR == FNR { documents++; entries += $1; next }
        FNR == 1 { print documents "\n60\n" entries } { for (i = 2; i <= NF; i++) { split($i, p, ":"); print FNR, p[1] + 1, p[2] } }' \
        test.ldac test.ldac >test.docword &&
        for form in train test; do "$emass" convert "$form.ldac" --format lda-c --vocabulary words "$form.h5" >/dev/null || return 1; done &&
        "$emass" run run.yaml --quiet --output of_hdf5.h5 --set model.data=train.h5 --set model.vocabulary=null &&
        "$emass" topics of_hdf5.h5 --words 12 >of_hdf5.txt && "$emass" topics whole.h5 --words 12 | cmp - of_hdf5.txt &&
        limited mpirun -n 2 "$emass" topics whole.h5 --words 12 | cmp - of_hdf5.txt && grep -q '  0[.][0-9][0-9]*  *2/2' of_hdf5.txt || return 1
    for fold in em gibbs; do
        "$emass" topics whole.h5 --documents test.h5 --fold-in "$fold" >of_hdf5.csv || return 1
        for form in test.ldac test.ldac.gz test.docword; do
            "$emass" topics whole.h5 --documents "$form" --fold-in "$fold" | cmp - of_hdf5.csv || return 1
        done
    done
    limited mpirun -n 2 "$emass" topics whole.h5 --documents test.docword --fold-in gibbs | cmp - of_hdf5.csv
}
other_data() { # perplexities of runs on other documents are not comparable
    "$emass" run run.yaml --quiet --output of_other.h5 --set model.data=test.ldac --set run.draws=10 &&
        "$emass" topics of3.h5 of_other.h5 >other.txt 2>said.txt && cat said.txt &&
        grep -q '^emass: warning: topics: these runs have different data' said.txt && [ "$(grep -c 'of.*h5$' other.txt)" = 2 ] &&
        "$emass" topics of3.h5 of5.h5 >other.txt 2>said.txt && [ ! -s said.txt ]
}
several() { # runs of other numbers of topics, one line each: five topics of five are found by both chains; junk is not
    local k status=0
    for k in 3 5; do
        "$emass" run run.yaml --quiet --overwrite --output "of$k.h5" --set model.topics="$k" --set run.draws=10 || return 1
    done
    "$emass" topics of3.h5 of5.h5 --csv >several.csv && "$emass" topics of3.h5 of5.h5 | grep -q '^ *5  *2 .* of5.h5$' &&
        awk -F, 'NR == 2 { worse = $4 } NR == 3 { ok = $1 == "of5.h5" && $2 == 5 && $3 == 2 && $4 < worse && $5 > 0 && $6 == 0 && $7 == 1 }
            END { exit !(ok && NR == 3) }' several.csv || return 1
    "$emass" topics of3.h5 of5.h5 --output x.h5 2>said.txt || status=$?
    [ "$status" = 2 ] && grep -q 'expected one file with these' said.txt && [ ! -e x.h5 ]
}
page() { # all topics, both traces, and nothing from elsewhere; only a page of the kind is replaced
    local status=0
    "$emass" topics whole.h5 --html page.html >said.txt && [ ! -s said.txt ] &&
        [ "$(grep -c '<tr id="t[0-4]">' page.html)" = 5 ] && [ "$(grep -c '<polyline' page.html)" = 4 ] &&
        grep -q 'overflow-wrap:normal.*min-width' page.html &&
        grep -q 'prefers-color-scheme:dark' page.html && ! grep -Eq 'https?:|src=|<script' page.html &&
        "$emass" topics whole.h5 --html page.html || return 1
    mkfifo pipe.html
    limited "$emass" topics whole.h5 --html pipe.html 2>said.txt || status=$?
    [ "$status" = 2 ] && grep -q 'pipe.html: found a FIFO' said.txt || return 1
    status=0
    echo mine >other.html
    "$emass" topics whole.h5 --html other.html 2>said.txt || status=$?
    [ "$status" = 2 ] && grep -q 'not a page of topics' said.txt && [ "$(cat other.html)" = mine ]
}
pooled() { # averaged over chains too: no worse than the worse of the two
    "$emass" topics whole.h5 | awk '/^Held-out/ { a = $(NF - 1); b = $NF } /^over all chains/ { c = $NF }
        END { exit !(c > 10 && c <= (a > b ? a : b)) }'
}
# Half of each test document's words are given as those to be scored.
given() { # and the definition that is printed says so
    awk '{ n = int((NF - 1) / 2); line = n; for (i = 2; i <= n + 1; i++) line = line " " $i; print line }' test.ldac >fold.ldac
    awk '{ n = int((NF - 1) / 2); line = NF - 1 - n; for (i = n + 2; i <= NF; i++) line = line " " $i; print line }' test.ldac >score.ldac
    limited mpirun -n 2 "$emass" run run.yaml --quiet --output given.h5 --overwrite --set run.shards=2 \
        --set model.test=fold.ldac --set model.test_scored=score.ldac --set run.draws=7 \
        --set run.warmup=20 && "$emass" summary given.h5 | grep -q '^perplexity  *[1-9][0-9]' &&
        "$emass" topics given.h5 | grep -q 'the tokens given for it are scored' &&
        "$emass" check run.yaml --set model.test=fold.ldac --set model.test_scored=score.ldac |
        grep -q "$(awk '{ for (i = 2; i <= NF; i++) { split($i, p, ":"); n += p[2] } } END { print n }' score.ldac) tokens scored"
}
# Documents of a model that is known: 0.9 of a topic is on twelve words of its own, the rest on all.
# Of those to test a fifth of the tokens is scored; `truth` is what the topics themselves make of them,
# folded in by the steps of EM that src/topics/lda_held_out.h says.
simulated() {
    awk '
        function phi(k, v) { return 0.1 / 60 + (int(v / 12) == k ? 0.9 / 12 : 0) }
        function below(n) { return int(n * rand()) }
        function token(a, b) { return rand() < 0.9 ? 12 * (rand() < 0.7 ? a : b) + below(12) : below(60) }
        function write_line(count, file,   v, m, line) {
            for (v = 0; v < 60; v++) if (v in count) { m++; line = line " " v ":" count[v] }
            print m + 0 line >file
        }
        function score(   k, v, i, n, sum) {
            for (v in fold) n += fold[v]
            for (k = 0; k < 5; k++) theta[k] = n / 5
            for (i = 0; i < 100; i++) {
                split("", next_)
                for (v in fold) {
                    sum = 0
                    for (k = 0; k < 5; k++) sum += g[k] = phi(k, v) * (0.1 + theta[k])
                    for (k = 0; k < 5; k++) next_[k] += fold[v] * g[k] / sum
                }
                for (k = 0; k < 5; k++) theta[k] = next_[k]
            }
            for (v in scored) {
                sum = 0
                for (k = 0; k < 5; k++) sum += phi(k, v) * (0.1 + theta[k]) / (0.5 + n)
                log_sum += scored[v] * log(sum); n_scored += scored[v]
            }
        }
        BEGIN {
            srand(12)
            for (d = 0; d < 1200; d++) {
                split("", fold); split("", scored); a = below(5); b = below(5)
                for (j = 20 + below(60); j > 0; j--)
                    if (d >= 1000 && rand() < 0.2) scored[token(a, b)]++; else fold[token(a, b)]++
                if (d < 1000) write_line(fold, "simulated.ldac")
                else { write_line(fold, "unseen.ldac"); write_line(scored, "unseen_scored.ldac"); score() }
            }
            print exp(-log_sum / n_scored)
        }' >truth
}
near_the_truth() { # TOPICS: all chains within 3 %
    "$emass" run run.yaml --quiet --output near.h5 --overwrite --set model.data=simulated.ldac --set model.topics="$1" \
        --set model.test=unseen.ldac --set model.test_scored=unseen_scored.ldac --set model.fold_in_alpha=0.1 --set run.draws=20 \
        --set run.warmup=200 && "$emass" topics near.h5 | awk -v truth="$(cat truth)" '/^Held-out/ && !done++ {
            print "truth", truth, "found", $(NF - 1), $NF
            for (i = NF - 1; i <= NF; i++) far += $i > 1.03 * truth || $i < 0.97 * truth
        } END { exit !done || far }'
}
too_few() { ! near_the_truth 4; }
# Test documents are folded in with the alpha of the model, unless the config says another.
scores_with() { # ALPHA OF-THE-FOLD
    "$emass" run run.yaml --quiet --output with.h5 --overwrite --set model.alpha="$1" --set model.fold_in_alpha="$2" \
        --set run.draws=10 --set run.warmup=20 --set run.chains=1 && "$emass" topics with.h5 | grep -A 1 '^Held-out' | head -n 2
}
alpha_of_the_fold() {
    local own other
    own=$(scores_with 0.5 model) && other=$(scores_with 0.5 0.1) &&
        [ "$own" = "$(scores_with 0.5 0.5 | sed "s/alpha 0.5/the model's alpha/")" ] &&
        echo "$own" | grep -q "EM with the model's alpha" && echo "$other" | grep -q 'EM with alpha 0.1' &&
        [ "$(echo "$own" | head -n 1)" != "$(echo "$other" | head -n 1)" ]
}
# Chains that find the same topics, each with other numbers, converge: their learned priors are common, and sums over
# topics do not depend on the order. Documents have a topic each, and one word in twenty is of any.
same_topics() {
    local seed
    awk 'BEGIN { srand(5); for (d = 0; d < 300; d++) {
        k = int(3 * rand()); split("", n)
        for (j = 0; j < 20; j++) n[rand() < 0.95 ? 6 * k + int(6 * rand()) : int(18 * rand())]++
        m = 0; line = ""; for (v = 0; v < 18; v++) if (v in n) { m++; line = line " " v ":" n[v] }
        print m line } }' >same.ldac
    printf '%s\n' 'model: {name: lda, data: same.ldac, topics: 3}' 'run: {chains: 4, warmup: 100, draws: 2000}' >same.yaml
    for seed in 1 2 3; do
        "$emass" run same.yaml --quiet --seed "$seed" --output same.h5 --overwrite && "$emass" summary same.h5 | tee said.txt &&
            grep -q '^converged: ' said.txt || return 1
    done
}
# One topic is the words' frequencies, smoothed by beta.
only_topic() {
    local set=(--set model.topics=1 --set model.test=null --set model.test_scored=null --set model.fold_in=em)
    "$emass" run run.yaml --quiet --output only.h5 "${set[@]}" && "$emass" summary only.h5 >only.txt 2>&1 || return 1
    cat only.txt
    grep -q '^converged: all monitored numbers are constant, so chains cannot differ in them; 2 chains x 60 draws, ended as planned$' only.txt &&
        ! grep -q 'not converged\|Undefined' only.txt
}
one_topic() {
    "$emass" run run.yaml --quiet --output one.h5 --overwrite --set model.topics=1 --set model.alpha=0.1 \
        --set model.beta=0.01 --set model.test=fold.ldac --set model.test_scored=score.ldac \
        --set run.draws=2 --set run.warmup=2 --set run.chains=1 &&
        "$emass" topics one.h5 >one.txt || return 1
    expected=$(gzip -cd train.ldac.gz | cat - score.ldac | awk '
        { for (i = 2; i <= NF; i++) { split($i, p, ":")
            if (NR <= 400) { count[p[1]] += p[2]; n += p[2] }
            else { sum -= p[2] * log((count[p[1]] + 0.01) / (n + 0.6)); m += p[2] } } }
        END { printf "%.1f", exp(sum / m) }')
    echo "expected $expected" && grep -q "^Held-out perplexity of each chain.* $expected\$" one.txt
}
lone_word() { # has no pair to be coherent; and a shard has no document
    yes '1 0:3' | head -n 2 >lone.ldac
    printf '%s\n' 'model: {name: lda, data: lone.ldac, topics: 2}' 'run: {chains: 2, warmup: 2, draws: 4, shards: 3}' >lone.yaml
    limited mpirun -n 3 "$emass" run lone.yaml --quiet --output lone.h5 --overwrite &&
        "$emass" topics lone.h5 >lone.txt && grep -q '  -  *2/2  0$' lone.txt &&
        "$emass" topics lone.h5 --html lone.html && ! grep -qi 'nan<' lone.html lone.txt
}
junk_topics() { # words that never stand together; those of the topics that were put in do
    awk 'BEGIN { for (d = 0; d < 40; d++) print "1 " d % 10 ":5" }' >apart.ldac
    printf '%s\n' 'model: {name: lda, data: apart.ldac, topics: 2}' 'run: {chains: 1, warmup: 5, draws: 4}' >apart.yaml
    "$emass" run apart.yaml --quiet --output apart.h5 --overwrite && "$emass" topics apart.h5 >apart.txt &&
        [ "$(grep -c '(junk)' apart.txt)" = 2 ] && grep -q 'the words of 2 topics' apart.txt &&
        "$emass" topics apart.h5 --html apart.html && [ "$(grep -c '>junk<' apart.html)" = 2 ] && ! grep -q junk topics.txt
}
# Words that a topic of six words has by chance, because ten are asked for, are not counted.
few_words() {
    awk 'function below(n) { seed = (seed * 16807) % 2147483647; return seed % n }
        BEGIN { seed = 3; for (d = 0; d < 200; d++) { split("", n); for (i = 0; i < 14; i++) n[6 * (d % 3) + below(6)]++
        line = ""; m = 0; for (v in n) { m++; line = line " " v ":" n[v] } print m line } }' >toy.ldac
    printf '%s\n' 'model: {name: lda, data: toy.ldac, topics: 3}' 'run: {chains: 1, warmup: 60, draws: 20}' >toy.yaml
    "$emass" run toy.yaml --quiet --output toy.h5 --overwrite && "$emass" topics toy.h5 >toy.txt && cat toy.txt &&
        "$emass" topics toy.h5 --csv | awk -F, 'NR > 1 && !($3 > 0.5) { bad++ } END { exit bad || NR != 31 }' && ! grep -q junk toy.txt
}
# The verdict of a run that did not converge is told with its topics, and only of such a run.
verdict() {
    "$emass" run run.yaml --quiet --output few.h5 --overwrite --set run.draws=4 --set run.warmup=2 --set model.topics=12 &&
        "$emass" topics few.h5 >few.txt && tail -n 1 few.txt && [ "$(grep -c '^not converged: ' few.txt)" = 1 ] || return 1
    "$emass" topics few.h5 --csv | grep -q converged && return 1
    local seed
    for seed in 1 2 3 4 5 6; do
        "$emass" run toy.yaml --quiet --output alike.h5 --overwrite --set model.alpha=1 --set model.beta=1 --set run.chains=4 \
            --set run.warmup=200 --set run.draws=1000 --set run.seed="$seed" || return 1
        "$emass" summary alike.h5 | grep -q '^converged' && break
    done
    "$emass" summary alike.h5 | grep '^converged' && ! "$emass" topics alike.h5 | grep converged
}
# A run without draws: the same of all commands.
without_draws() {
    local status=0 command
    rm -f early.h5*
    "$emass" run run.yaml --quiet --output early.h5 --max-time 0 || status=$?
    [ "$status" = 75 ] && h5dump -H -d /model_topics early.h5.checkpoint | grep -q H5T_STD_U8LE || return 1
    for command in 'topics early.h5' 'topics early.h5 whole.h5' 'summary early.h5' 'diff early.h5 early.h5'; do
        status=0
        # shellcheck disable=SC2086
        "$emass" $command 2>said.txt || status=$?
        cat said.txt
        [ "$status" = 2 ] && grep -qE '^emass: early.h5: group (averages|posterior) has no draws yet: its run .*emass run --resume continues a stopped run$' said.txt || return 1
    done
}
# Perplexity of the documents that a run learns from is no held-out one.
tests_itself() {
    cp train.ldac.gz copy.ldac.gz
    "$emass" check run.yaml --set model.test=train.ldac.gz 2>said.txt >plan.txt && grep -q '^emass: warning: model.test: .*train.ldac.gz has the documents of model.data: perplexity is not held-out$' said.txt &&
        "$emass" check run.yaml --set model.vocabulary=null --set model.test=copy.ldac.gz 2>said.txt >plan.txt && grep -q 'copy.ldac.gz has the documents of' said.txt &&
        "$emass" check run.yaml 2>said.txt >plan.txt && ! grep -q warning said.txt
}
no_topics() { # one line, status 2
    local status=0
    "$emass" run other.yaml --quiet --output other.h5 --overwrite &&
        { "$emass" topics other.h5 2>said.txt || status=$?; } && [ "$status" = 2 ] &&
        grep -q 'found no averages/phi' said.txt
}
printf '%s\n' 'model: {name: banana}' 'run: {chains: 1, warmup: 20, draws: 10}' >other.yaml
check 'a line for each topic, found by both chains' tells_topics
check 'words and probabilities as CSV' words_csv
check 'runs of several numbers of topics beside one another' several
check 'runs on other data' other_data
check 'text as HDF5' same_of_text
if command -v h5dump >/dev/null; then
    check 'mixtures and topics as HDF5 tables' files_of_tables
else
    skip 'mixtures and topics as HDF5 tables' 'no h5dump'
fi
check 'mixtures of new documents' mixes
check 'and by the own Gibbs of the model' mixes --fold-in gibbs
check 'chains that find the same topics converge' same_topics
check 'test documents are folded in with the alpha of the model or of the config' alpha_of_the_fold
check 'both scores, with their definitions' both_scores
# The lines of src/topics/TOPICS.md for Python: a table of ten words for each of the five topics.
snippet() {
    { echo 'import pandas, xarray' && sed -n '/^phi = xarray/,/^print(pandas/p' "$top/src/topics/TOPICS.md" |
        sed 's/run\.h5/whole.h5/'; } >snippet.py &&
        "$top/analysis/venv/bin/python" snippet.py >table.txt && [ "$(grep -c 'word[0-9]' table.txt)" -ge 5 ] &&
        grep -q '^4  *word' table.txt
}
if "$top/analysis/venv/bin/python" -c 'import pandas, xarray' 2>said.txt; then
    check 'the top words in pandas, as TOPICS.md says' snippet
else
    skip 'the top words in pandas' 'no pandas or xarray in analysis/venv'
fi
check 'a page of its own' page
check 'a score averaged over chains' pooled
check 'tokens to be scored are given' given
check 'documents of a model that is known' simulated
check 'perplexity is that of its topics' near_the_truth 5
check 'that of fewer topics is not' too_few
check 'one topic' one_topic
check 'nothing differs between chains of one topic' only_topic
check 'topics of a single word' lone_word
check 'topics whose words are never together are junk' junk_topics
check 'a file without topics' no_topics
check 'topics of fewer words than are shown' few_words
check 'the verdict of a run that did not converge' verdict
check 'a run without draws, whose checkpoint has a byte a token' without_draws
check 'a test of the documents trained on' tests_itself
check 'verified on other ranks' limited "$emass" verify whole.h5 --ranks 2
check 'checked' limited "$emass" check run.yaml

# ---- what is refused ----

refuses() { # RANKS WHAT ARGUMENT...
    refused "$2" mpirun -n "$1" "$emass" run run.yaml --output bad.h5 "${@:3}"
}
printf '2 0:1 60:1\n' >bad.ldac
printf '1\n60\n2\n1 1 1\n' >short.docword
check 'a word out of the vocabulary' refuses 1 "bad.ldac:1: found '60:1', expected id:count with a \
word's id, an integer from 0 to 59 (the words of the vocabulary)" --set model.data=bad.ldac
check 'the same on three shards' refuses 3 bad.ldac:1: --set model.data=bad.ldac --set run.shards=3
check 'a test corpus of other words' refuses 2 "bad.ldac:1: found '60:1', expected id:count with a word's id, \
an integer from 0 to 59 (the words of the vocabulary, or else those found" --set model.test=bad.ldac
check 'a corpus cut short' refuses 2 short.docword:4: --set model.data=short.docword
head -n 9 test.ldac >nine.ldac
check 'other documents to be scored' refuses 1 'found 9 documents, expected the 60 of test.ldac' \
    --set model.test_scored=nine.ldac
check 'a corpus that is not there' refuses 2 missing: --set model.data=missing
check 'another sampler' refuses 2 'needs a density, which model lda does not have' --set sampler.name=hmc
check 'what sgrld needs' refuses 2 'expected sampler lda_gibbs, or model.parameters: expanded_mean with metric: expanded_mean' \
    --set 'sampler={name: sgrld, minibatch: 10, step_size: 1e-3}'
check 'what sgld needs' refuses 2 'expected sampler lda_gibbs, or model.parameters: expanded_natural' \
    --set 'sampler={name: sgld, minibatch: 10, step_size: 1e-3}'
printf '%s\n' 'model: {name: banana}' 'sampler: {name: lda_gibbs}' >run.yaml
check 'another model' refuses 1 'model banana has none'
finish
