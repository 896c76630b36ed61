#!/usr/bin/env bash
# What a table takes: with shards each rank has its part of it, while it is read too, and reads that
# part alone; ranks that hold the same rows on one node have one copy; the first bad line is named
# whoever met it. Of CSV, .gz, LIBSVM and HDF5.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

if [ ! -r /proc/self/smaps_rollup ]; then
    skip 'memory' 'no /proc/self/smaps_rollup'
    finish
fi

# So many times 50000 rows, 4.4 MB as doubles; the small one is what a rank takes anyhow. The slow
# one (slow/memory.sh) looks at two shards, times, bad lines and every format too.
copies=${EMASS_TABLE_COPIES:-4}
slow=$((copies > 4))
table=$((4400 * copies))
awk 'BEGIN { srand(1); for (i = 0; i < 50000; i++) { s = ""; for (j = 0; j < 10; j++) s = s int(100 * rand()) ","; print s i % 2 } }' >part.csv
for _ in $(seq "$copies"); do cat part.csv; done >large.csv
head -n 100 part.csv >small.csv
gzip -1 -k large.csv
"$emass" convert large.csv large.h5 >/dev/null
for size in small large; do
    awk -F, '{ s = $11; for (j = 1; j <= 10; j++) s = s " " j ":" 1 + $j; print s }' "$size.csv" >"$size.svm"
done
cat >run.yaml <<'YAML'
model: {name: logistic, data: "${TABLE}"}
sampler: {name: hmc, step_size: 0.0001, leapfrog_steps: 1}
mass: {estimator: none}
run: {chains: 4, warmup: 1, draws: 1}
YAML
cat >peak.py <<'PYTHON'
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:], close_fds=False)  # MPICH's ranks are handed one
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "a").write("%d %d\n" % (used.ru_maxrss, 1000 * used.ru_utime))
sys.exit(code)
PYTHON

peak() { # TABLE SHARDS: most of a rank, in kB, and the user's time of the one that waited least, in ms
    rm -f peaks
    TABLE=$1 limited mpirun -n "$2" python3 peak.py peaks "$emass" run run.yaml --quiet --overwrite \
        --output peak.h5 --set run.chains=1 --set run.shards="$2" >&2 &&
        awk '{ if ($1 > kb) kb = $1; if (!ms || $2 < ms) ms = $2 } END { print kb, ms }' peaks
}

# Chains of dimension 200 whose mass is a matrix: what it is learned from are some draws of each, not
# sums of products, of which each chain would have 4 times 300 kB.
cat >many.yaml <<'YAML'
model: {name: gaussian, dim: 200}
run: {chains: 300, warmup: 20, draws: 1}
YAML
dense() {
    local few many
    rm -f peaks
    for chains in 8 300; do
        limited python3 peak.py peaks "$emass" run many.yaml --quiet --overwrite --output many.h5 --chains "$chains" || return
    done
    few=$(head -n 1 peaks) many=$(tail -n 1 peaks) few=${few% *} many=${many% *}
    echo "$few kB of 8 chains, $many kB of 300"
    [ $((many - few)) -lt $((292 * 1000)) ]
}
check 'a chain with a dense mass of 200 x 200: below 1 MB' dense
told() { # by check, what learning takes
    "$emass" check many.yaml --set run.chains=1000 | grep -E ', [1-4][0-9]([.][0-9])? MB to learn the mass$'
}
check 'check tells of it' told

# What check says a rank takes, and what one takes: topics of 20,000 words, of which each chain has 100 MB.
awk 'BEGIN { srand(2); for (d = 0; d < 2000; d++) { s = "30"; for (i = 0; i < 30; i++)
    s = s " " 666 * i + int(rand() * 666) ":" 1 + int(rand() * 3); print s } print "1 19999:1" }' >topics.ldac
cat >topics.yaml <<'YAML'
model: {name: lda, data: topics.ldac, topics: 300}
run: {chains: 1, warmup: 3, draws: 2}
YAML
planned() { # RANKS CHAINS [CONFIG]
    local set=(--set "run.shards=$1" --set "run.chains=$2") config=${3:-topics.yaml} plan peak
    rm -f peaks
    plan=$(limited mpirun -n "$1" "$emass" check "$config" "${set[@]}" |
        sed -n 's/^# memory *\([0-9.]*\) MB.*/\1/p')
    limited mpirun -n "$1" python3 peak.py peaks "$emass" run "$config" --quiet --overwrite --output planned.h5 \
        "${set[@]}" >&2 || return
    peak=$(sort -n peaks | tail -n 1)
    echo "planned $plan MB, taken ${peak% *} kB, by $1 ranks with $2 chains"
    awk -v plan="$plan" -v kb="${peak% *}" 'BEGIN { off = plan * 1000 / (kb * 1.024); exit !(off > 0.85 && off < 1.15) }'
}
check 'topics take what check plans, within 15 %' planned 1 1
check 'topics of three chains likewise' planned 1 3
check 'topics on two shards likewise' planned 2 1

# Networks of 258,010 weights, whose arrays are just beyond a page of 2 MB and take two; with what the heat bath
# of sghmc takes when a run starts.
cat >network.yaml <<'YAML'
model: {name: network, data: small.csv, layers: [{dense: 500}, {dense: 500}], precision: single}
sampler: {name: sghmc, step_size: 1e-5, friction: 10, minibatch: 50}
mass: {estimator: none}
run: {chains: 1, warmup: 0, draws: 2}
YAML
check 'a network takes what check plans, within 15 %' planned 1 1 network.yaml
check 'networks of three chains likewise' planned 1 3 network.yaml

# What the table adds, on 2 and on 4 shards, to that on one: a half, a quarter, and some for what is
# in flight. So does the time to the first draw, once it is long enough to be told from that of a
# start: of .gz a rank unpacks all.
falls() { # LARGE SMALL [ABOVE]: of the time, parts of a hundred above a half and a quarter
    local small one two four above=${3:-25}
    read -ra small < <(peak "$2" 4) && read -ra one < <(peak "$1" 1) && read -ra four < <(peak "$1" 4) || return 1
    local kb=$((one[0] - small[0])) ms=$((one[1] - small[1]))
    echo "$1: ${one[*]} (kB, ms) on one rank, ${four[*]} on four, ${small[*]} without it"
    [ "$kb" -gt "$table" ] && [ $((100 * (four[0] - small[0]))) -lt $((40 * kb)) ] || return 1
    [ "$slow" = 1 ] || return 0
    read -ra two < <(peak "$1" 2) || return 1
    echo "${two[*]} on two"
    [ $((100 * (two[0] - small[0]))) -lt $((65 * kb)) ] || return 1
    [ "$ms" -lt 2000 ] || { [ $((100 * (two[1] - small[1]))) -lt $(((50 + above) * ms)) ] &&
        [ $((100 * (four[1] - small[1]))) -lt $(((25 + above) * ms)) ]; }
}
check 'CSV: a quarter of the memory on four shards' falls large.csv small.csv
check '.gz: a quarter' falls large.csv.gz small.csv 70
check 'LIBSVM: a quarter' falls large.svm small.svm
check 'HDF5: a quarter' falls large.h5 small.csv

# Two bad lines, of which the first is named: met by another rank than the second one is.
first=$((50000 * copies * 6 / 10)) second=$((50000 * copies * 9 / 10))
names_first() { # FILE COMMAND: which writes it
    local ranks status
    "${@:2}" >"bad.$1"
    for ranks in 1 2 4; do
        status=0
        TABLE=bad.$1 limited mpirun -n "$ranks" "$emass" run run.yaml --quiet --output bad.h5 \
            --set run.chains=1 --set run.shards="$ranks" >said.txt 2>&1 || status=$?
        cat said.txt
        [ "$status" = 2 ] && [ "$(grep -c '^emass: ' said.txt)" = 1 ] && [ ! -e bad.h5 ] &&
            grep -q "bad\.$1:$first: found '[^']*oops'" said.txt || return 1
    done
    rm "bad.$1"
}
spoil() { sed -E -e "${first}s/[0-9]+([, ])/oops\1/2" -e "${second}s/[0-9]+([, ])/ooops\1/2" "$1"; }
spoil_gz() { spoil large.csv | gzip -1; }
if [ "$slow" = 1 ]; then
    check 'CSV: the first bad line, on 1, 2 and 4 ranks' names_first large.csv spoil large.csv
    check '.gz: likewise' names_first large.csv.gz spoil_gz
    check 'LIBSVM: likewise' names_first large.svm spoil large.svm
fi

# Each page counted once, however many ranks see it.
used() { # FILE: by the ranks that write it, in kB
    local sum=0 rank
    for rank in $(ranks_of "$1"); do
        sum=$((sum + $(awk '/^Pss:/ { print $2 }' "/proc/$rank/smaps_rollup" 2>/dev/null) + 0))
    done
    echo "$sum"
}
# The most that four ranks take, each with all of it, from their start until they have drawn for a while:
# they draw until they are told to stop.
together() { # TABLE CONFIG
    local output=$scratch/together.h5 most=0 looks=0 now
    rm -f "$output"
    TABLE=$1 limited mpirun -n 4 "$emass" run "$scratch/${2:-run}.yaml" --quiet --output "$output" \
        --set run.draws=60 --set run.thin=1000000 >&2 &
    while kill -0 $! 2>/dev/null; do
        now=$(used "$output")
        [ "$now" -le "$most" ] || most=$now
        [ ! -e "$output" ] || looks=$((looks + 1))
        [ "$looks" -lt 5 ] || ranks_of "$output" | xargs -r kill 2>/dev/null
        sleep 0.1
    done
    wait $!
    [ $? = 75 ] && echo "$most"
}
one_copy() { # LARGE SMALL: and for a moment the parts that were read, together another; it would be five
    local small large
    small=$(together "$2") && large=$(together "$1") || return 1
    echo "$1: four ranks: $large kB, $small kB without the table"
    [ $((large - small)) -gt $((9 * table / 10)) ] && [ $((large - small)) -lt $((3 * table)) ]
}
check 'CSV: one copy for four ranks of a node' one_copy large.csv small.csv
if [ "$slow" = 1 ]; then
    check '.gz: one copy' one_copy large.csv.gz small.csv
    check 'LIBSVM: one copy' one_copy large.svm small.svm
    check 'HDF5: one copy' one_copy large.h5 small.csv
fi

# A matrix of 1500 x 1500 numbers, 18 MB: read, factored and kept by one of the four.
sed 's/name: logistic, data:/name: gaussian, covariance:/' run.yaml >matrix.yaml
square() { # N
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) { s = i ? 0 : 2; for (j = 1; j < n; j++) s = s (i == j ? ",2" : ",0"); print s } }'
}
square 1500 >large.matrix.csv
square 3 >small.matrix.csv
one_matrix() {
    local small large
    small=$(together small.matrix.csv matrix) && large=$(together large.matrix.csv matrix) || return 1
    echo "four ranks: $large kB, $small kB without the matrix"
    [ $((large - small)) -gt 16000 ] && [ $((large - small)) -lt $((4 * 17600)) ]
}
check 'one matrix for four ranks of a node' one_matrix
finish
