#!/usr/bin/env bash
# A list of numbers of topics: a run for each, with the bytes of a run of its own, on any number of
# ranks, killed and resumed; one table and one page. And kills of each kernel of topics.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
export OMPI_MCA_odls_base_sigkill_timeout="0" # mpirun kills the other ranks at once

awk 'BEGIN {
    srand(5)
    for (d = 0; d < 330; d++) {
        m = 0; s = ""; topic = int(4 * rand())
        for (v = 0; v < 80; v++) if (rand() < (int(v / 20) == topic ? 0.5 : 0.05)) { m++; s = s " " v ":" 1 + int(3 * rand()) }
        print m s >(d < 300 ? "train.ldac" : "test.ldac")
    }
}'
cat >scan.yaml <<'YAML'
model: {name: lda, data: train.ldac, test: test.ldac, topics: [4, 12, 200]}
run: {chains: 2, warmup: 30, draws: 20}
output: {checkpoint_every: 0, file: scan.h5}
YAML

scan() { # RANKS ARGUMENT...
    local launcher=(mpirun -n "$1")
    [ "$1" != 1 ] || launcher=()
    limited "${launcher[@]}" "$emass" run "$scratch/scan.yaml" "${@:2}" 2>log
}
alone() {
    local k
    for k in 4 12 200; do
        limited "$emass" run scan.yaml --quiet --set model.topics="$k" --output "alone$k.h5" || return 1
    done
}
alike() { # the files of the scan are those of separate runs, and nothing else is left
    local k
    for k in 4 12 200; do cmp "alone$k.h5" "scan.topics$k.h5" || return 1; done
    [ "$(echo scan.*)" = 'scan.topics.html scan.topics12.h5 scan.topics200.h5 scan.topics4.h5 scan.yaml' ]
}
same() { # RANKS ARGUMENT...
    rm -f scan.topics*
    scan "$@" --quiet && alike
}
table() {
    rm -f scan.topics*
    scan 1 >table.txt && alike && awk '$NF ~ /^scan.topics[0-9]+.h5$/ && NF == 8 { n++; bad += $1 != 0 + substr($NF, 12) || !($3 > 1) || $7 != "-" }
        END { exit bad || n != 3 }' table.txt && [ "$(grep -c '^topics=.*converged' table.txt)" = 3 ]
}
page() { # a row of each run and a figure of each column but the seconds, which SOURCE_DATE_EPOCH leaves out
    [ "$(grep -c '^<tr><td' scan.topics.html)" = 3 ] && [ "$(grep -c '<polyline' scan.topics.html)" = 4 ] &&
        ! grep -Eq 'https?:|src=|<script|nan' scan.topics.html || return 1
    "$emass" topics scan.topics*.h5 --html again.html && cmp <(sort again.html) <(sort scan.topics.html) &&
        echo mine >other.html && ! "$emass" topics scan.topics*.h5 --html other.html 2>log &&
        grep -q 'not a page of topics' log && [ "$(cat other.html)" = mine ]
}
report() { # of one run, with a row of each topic; of all of them, which is the page of the scan
    "$emass" report scan.topics4.h5 --output report.html && [ "$(grep -o 'tr id=..t[0-9]' report.html | wc -l)" = 4 ] &&
        "$emass" report scan.topics4.h5 scan.topics12.h5 scan.topics200.h5 --output all.html && cmp all.html scan.topics.html
}
word_of() { h5dump -a /verdict "$1" | sed -n 's/^ *(0): "\([^:]*\):.*/\1/p'; }
verdicts() { # of each run, in the table, as comma-separated values, and on pages
    local file failed=() n=0
    for file in scan.topics*.h5; do
        [ "$(word_of "$file")" != 'not converged' ] || failed+=("$file")
    done
    "$emass" topics scan.topics*.h5 >beside.txt && cat beside.txt && [ ${#failed[@]} -gt 0 ] || return 1
    grep -qF "Not converged: $(printf '%s, ' "${failed[@]}" | sed 's/, $//') (emass summary FILE says why)." beside.txt &&
        "$emass" topics scan.topics*.h5 --csv >beside.csv && head -n 1 beside.csv | grep -q ',verdict$' || return 1
    for file in scan.topics*.h5; do
        grep -q "^$file,.*,$(word_of "$file")\$" beside.csv && n=$((n + 1))
    done
    [ "$n" = 3 ] && [ "$(grep -c '<td>not converged<td>' scan.topics.html)" = ${#failed[@]} ] &&
        "$emass" topics "${failed[0]}" --html one.html && grep -q '<p>The run: not converged: worst R-hat ' one.html
}
run_reports() { # the page of a run, by the command that makes the run
    limited mpirun -n 2 "$emass" run scan.yaml --quiet --set model.topics=4 --output paged.h5 --report paged.html &&
        cmp paged.h5 alone4.h5 && "$emass" report paged.h5 --output once_more.html >/dev/null && cmp paged.html once_more.html
}
no_page() { # PAGE ARGUMENT...: a file that is not to be replaced is refused before a run begins
    local status=0
    rm -f scan.topics* paged.h5 && echo mine >"$1"
    scan 2 --quiet "${@:2}" || status=$?
    [ "$status" = 2 ] && [ "$(grep -c '^emass: ' log)" = 1 ] && grep -q "$1: found a file that is no" log &&
        [ "$(cat "$1")" = mine ] && rm "$1" && ! ls scan.topics*.h5 paged.h5 2>/dev/null
}
stopped() { # at a limit, on three ranks; the rest is made on another number of them
    local status=0
    rm -f scan.topics*
    scan 1 --quiet --max-time 0 || status=$?
    [ "$status" = 75 ] && [ ! -e scan.topics4.h5 ] && [ ! -e scan.topics.html ] && scan 3 --quiet --resume && alike
}
killed() { # PASSAGE: at that change of a file by rank 0
    rm -f scan.topics*
    ! EMASS_FAULT="kill:file-*:0:$1" scan 2 --quiet --progress none || return 1
    while pgrep -f "^$emass run $scratch/scan.yaml" >/dev/null; do sleep 0.1; done
    rm -f scan.*_cid-* scan.*.h5*-*.lock scan.*.locktest.* # files that Open MPI leaves
    scan 3 --quiet --resume && alike && return
    cat log && ls -la scan.*
    return 1
}
ranks_of_scan() { pgrep -f "^$emass run $scratch/scan.yaml" | sort -n; } # in the order of the ranks
two_sets=(--progress none --set 'model.topics=[12, 100]' --set run.draws=2000 --set model.test=null)
two_alone() {
    rm -f scan.topics* && scan 1 --quiet "${two_sets[@]}" && mv scan.topics12.h5 long12.h5 && mv scan.topics100.h5 long100.h5
}
# On four ranks, two of each run. A signal to any one of them, or to all by mpirun, ends both runs with a checkpoint.
signalled() { # NUMBER: of the rank, from 1 on; mpirun: all ranks, by the signal that mpirun hands on
    local status=0 pid k
    rm -f scan.topics* said.txt
    limited mpirun -n 4 "$emass" run "$scratch/scan.yaml" "${two_sets[@]}" >said.txt 2>log &
    pid=$!
    for k in 12 100; do wait_for "scan.topics$k.h5" "$pid" || return 1; done
    if [ "$1" = mpirun ]; then
        pkill -USR1 -f "^mpirun -n 4 $emass run $scratch/scan.yaml"
    else
        kill -TERM "$(ranks_of_scan | sed -n "$1p")"
    fi
    wait "$pid" || status=$?
    cat log
    [ "$status" = 75 ] && [ ! -s said.txt ] && [ "$(grep -c '^emass: .*stopped by a signal' log)" = 1 ] &&
        [ -e scan.topics12.h5.checkpoint ] && [ -e scan.topics100.h5.checkpoint ] && [ ! -e scan.topics.html ] &&
        scan 3 --quiet --resume "${two_sets[@]}" || return 1
    for k in 12 100; do cmp "long$k.h5" "scan.topics$k.h5" || return 1; done
}
# The last rank, whose runs have ended, hands the signal on to those that work.
signalled_at_rest() {
    local status=0 pid
    rm -f scan.topics* said.txt
    limited mpirun -n 4 "$emass" run "$scratch/scan.yaml" "${two_sets[@]}" --set 'model.topics=[2, 400]' >said.txt 2>log &
    pid=$!
    wait_for said.txt "$pid" && grep '^topics=2,' said.txt && kill -TERM "$(ranks_of_scan | tail -n 1)" || return 1
    wait "$pid" || status=$?
    cat log
    [ "$status" = 75 ] && [ -e scan.topics400.h5.checkpoint ] && [ ! -e scan.topics2.h5.checkpoint ]
}
there() { # one of the files is there: no run begins
    local status=0
    rm -f scan.topics* && cp alone4.h5 scan.topics4.h5
    scan 2 --quiet || status=$?
    [ "$status" = 2 ] && [ "$(grep -c '^emass: ' log)" = 1 ] && grep -q 'scan.topics4.h5 exists' log && [ ! -e scan.topics200.h5 ]
}
refuses() { # WHAT VALUE
    local status=0
    rm -f scan.topics*
    scan 2 --quiet --set model.topics="$2" || status=$?
    cat log
    [ "$status" = 2 ] && [ "$(grep -c '^emass: ' log)" = 1 ] && grep -qF "$1" log && ! ls scan.topics* 2>/dev/null
}
line_of_list() {
    local status=0
    sed 's/\[4, 12, 200\]/[4, twelve]/' scan.yaml >bad.yaml
    "$emass" run bad.yaml 2>log || status=$?
    [ "$status" = 2 ] && grep -q "^emass: bad.yaml:1: model.topics: found 'twelve', expected an integer" log
}
plans() { # of each value, on the ranks that it would have
    limited mpirun -n 4 "$emass" check scan.yaml >plan.txt && [ "$(grep -c '^# memory' plan.txt)" = 3 ] &&
        grep -q '^# output     scan.topics200.h5' plan.txt && grep -q '^# rank 1     chains 1 .. 1' plan.txt
}
planned_peak() { # [ARGUMENT...]: what a rank holds at most is planned within 15 %, and most of it is held while data are read
    local peak plan
    peak=$(python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6)' "$emass" run wide.yaml --quiet --overwrite "$@") || return 1
    plan=$("$emass" check wide.yaml | sed -n 's/^# memory *\([0-9.e+]*\) MB per rank.*/\1/p')
    echo "peak $peak MB, planned $plan MB"
    awk -v peak="$peak" -v plan="$plan" 'BEGIN { exit !(peak > 40 && plan > 0.85 * peak && plan < 1.15 * peak) }'
}
awk 'BEGIN {
    srand(3)
    for (d = 0; d < 12000; d++) {
        v = 0; s = ""
        for (j = 0; j < 100; j++) { v += 1 + int(17 * rand()); s = s " " v ":1" }
        print 100 s
    }
}' >wide.ldac
printf '%s\n' 'model: {name: lda, data: wide.ldac, topics: 5}' 'run: {chains: 1, warmup: 4, draws: 2}' >wide.yaml
check 'the peak of memory, as planned' planned_peak
check 'that of several runs is that of one' planned_peak --set 'model.topics=[2, 3, 4, 5]'
check 'runs of each number of topics by themselves' alone
check 'a scan on one rank, with a table' table
check 'its page' page
check 'a report of one of them, and of all' report
check 'with the verdict of each' verdicts
check 'a report by the run itself' run_reports
check 'the page of the scan would replace another file' no_page scan.topics.html
check 'so would one of --report' no_page other.html --report other.html
check 'so would that of one run' no_page other.html --set model.topics=4 --output paged.h5 --report other.html
check 'the same bytes on 2 ranks' same 2
check 'the same bytes on 3 ranks' same 3
check 'the same bytes on 5 ranks, more than runs' same 5
check 'the same bytes on 2 groups of 2 shards' same 4 --set run.shards=2
check 'the same bytes on 8 ranks, more than chains' same 8
check 'stopped, and resumed on other ranks' stopped
check 'killed in a run, and resumed' killed 9
check 'killed later' killed 14
check 'a long scan on one rank' two_alone
check 'SIGTERM to the first rank of a set' signalled 1
check 'SIGTERM to the last rank of another set' signalled 4
check 'SIGUSR1 to mpirun' signalled mpirun
check 'SIGTERM to a rank whose runs have ended' signalled_at_rest
check 'an output that is there' there
check 'a value that is none' refuses "found 'ten', expected an integer from 1" '[4, ten]'
check 'a value twice' refuses 'found 4 twice' '[4, 12, 4]'
check 'no value' refuses 'found a list of 0 values' '[]'
check 'file and line of a value' line_of_list
check 'the plan of each run' plans

# ---------------------------------------------------------------- kernels

"$emass" convert train.ldac train.h5 --format lda-c >/dev/null 2>&1 || not_ok 'a corpus in HDF5'
kernel_on() { # RANKS ARGUMENT...
    local launcher=(mpirun -n "$1")
    [ "$1" != 1 ] || launcher=()
    limited "${launcher[@]}" "$emass" run scan.yaml --quiet --output kernel.h5 --set model.test="" "${settings[@]}" "${@:2}"
}
# SETTING...: stopped in warmup, killed while it saves the draws that it made from there, stopped in draws, and
# ended on other ranks and shards.
kernel_killed() {
    local settings=() setting status=0
    for setting in "$@"; do settings+=(--set "$setting"); done
    rm -f kernel.h5* whole.h5
    kernel_on 1 && mv kernel.h5 whole.h5 || return 1
    EMASS_FAULT='time-limit:0:15' kernel_on 1 2>log || status=$?
    [ "$status" = 75 ] || return 1
    ! EMASS_FAULT='kill:checkpoint-write:0' kernel_on 1 --resume 2>log || return 1
    [ -e kernel.h5.lock ] || return 1
    status=0
    EMASS_FAULT='time-limit:0:40' kernel_on 2 --resume "${shards[@]}" 2>log || status=$?
    [ "$status" = 75 ] && kernel_on 2 --resume && cmp whole.h5 kernel.h5
}
gradients=(sampler.minibatch=50 sampler.step_size=0.01 model.warm_start=true)
shards=(--set run.shards=2)
check 'kills of all topics of a token' kernel_killed model.topics=12
check 'kills of topics of the document, and a sum' kernel_killed model.topics=200
check 'kills of the same with gammas for all' kernel_killed model.topics=200 model.beta=0.1
check 'kills with alpha and beta learned' kernel_killed model.topics=200 model.alpha=learned model.beta=learned
check 'kills of a streamed corpus' kernel_killed model.topics=12 model.data=train.h5 model.stream=true model.scratch="$scratch"
shards=()
check 'kills of sgrld' kernel_killed model.topics=8 model.parameters=expanded_mean sampler.name=sgrld \
    sampler.metric=expanded_mean sampler.leapfrog_steps=1 "${gradients[@]}"
check 'kills of sgld' kernel_killed model.topics=8 model.parameters=expanded_natural sampler.name=sgld \
    sampler.leapfrog_steps=1 "${gradients[@]}"
finish
