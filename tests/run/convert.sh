#!/usr/bin/env bash
# Tables converted to HDF5: the same file by any number of ranks, the same hash and the same draws as
# from the text; what is already there is kept; hostile files of that form are one line and status 2.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
python=$(cd "$(dirname "$0")/../.." && pwd)/analysis/venv/bin/python
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

awk 'BEGIN { print "a,\"b, c\",y"; srand(1); for (i = 0; i < 3000; i++) print rand() "," 2 * rand() "," i % 2 }' >dense.csv
awk 'BEGIN { srand(2); for (i = 0; i < 3000; i++) print i % 2, 1 + int(9 * rand()) ":1", 20 + int(9 * rand()) ":0.5" }' >sparse.svm
gzip -k dense.csv

convert() { # RANKS ARGUMENT...
    limited mpirun -n "$1" "$emass" convert "${@:2}"
}
hash_of() { sed -n 's/^# hash *//p' "$1"; }


on_any_ranks() { # FILE ROWS
    convert 1 "$1" one.h5 >one.txt && convert 3 "$1" three.h5 >three.txt || return 1
    cat one.txt
    cmp one.h5 three.h5 && [ "$(hash_of one.txt)" = "$(hash_of three.txt)" ] &&
        grep -q '^# rows *3000$' one.txt && [ ! -e one.h5.part ]
    local same=$?
    mv one.h5 "$1.h5"
    rm three.h5
    return "$same"
}
check 'CSV: the same file by 1 and 3 ranks' on_any_ranks dense.csv
check 'LIBSVM: the same file by 1 and 3 ranks' on_any_ranks sparse.svm

hash_stays() { # FROM AGAIN
    "$emass" convert "$1" a.h5 >a.txt && convert 2 "$2" b.h5 >b.txt && cat a.txt b.txt &&
        [ -n "$(hash_of a.txt)" ] && [ "$(hash_of a.txt)" = "$(hash_of b.txt)" ]
    local same=$?
    rm -f a.h5 b.h5
    return "$same"
}
check 'the hash of a compressed file' hash_stays dense.csv dense.csv.gz
check 'the hash of a converted one' hash_stays dense.csv dense.csv.h5
check 'the hash of a sparse one' hash_stays sparse.svm sparse.svm.h5:/table
check 'names are kept' grep -q '  b, c ' <(convert 1 dense.csv.h5 c.h5)

draws() { # FILE OUTPUT RANKS
    cat >run.yaml <<YAML
model: {name: logistic, data: "$1", prior_scale: 4}
sampler: {name: hmc, step_size: 0.02}
run: {chains: 2, warmup: 20, draws: 20}
YAML
    limited mpirun -n "$3" "$emass" run run.yaml --quiet --overwrite --output "$2" --set run.shards="$3" &&
        "$emass" summary "$2" --csv >"$2.csv"
}
same_draws() { # TEXT HDF5
    draws "$1" text.h5 1 && draws "$2" converted.h5 2 && cmp text.h5.csv converted.h5.csv && [ -s text.h5.csv ]
}
check 'CSV: the same draws, on 2 shards' same_draws dense.csv dense.csv.h5
check 'LIBSVM: the same draws, on 2 shards' same_draws sparse.svm sparse.svm.h5:/table

# ---- what is there ----
printf '1.5,2\n3,4\n' >small.csv
check 'an output that exists' refused -E 'give --overwrite' "$emass" convert small.csv dense.csv.h5
check 'a file that is no output of emass' refused -E 'not an output of emass' "$emass" convert small.csv dense.csv.gz --overwrite
check 'a folder' refused -E 'found a folder' "$emass" convert small.csv "$scratch" --overwrite
check 'a folder that is not there' refused -E 'none/c.h5: cannot be written: none/: No such' "$emass" convert small.csv none/c.h5
check 'itself' refused -E 'is being read' "$emass" convert small.csv small.csv --overwrite
replaced() { "$emass" convert small.csv c.h5 --overwrite | grep -q '^# rows *2$' && "$emass" convert c.h5 d.h5 | grep -q '^# rows *2$'; }
check '--overwrite' replaced
part() { # somebody's stays; what a killed command left goes
    echo mine >c.h5.part
    refused -E 'c.h5.part: found a file that is not an output of emass' "$emass" convert small.csv c.h5 --overwrite &&
        [ "$(cat c.h5.part)" = mine ] && head -c 3000 d.h5 >c.h5.part &&
        "$emass" convert small.csv c.h5 --overwrite >out.txt && [ ! -e c.h5.part ]
}
check 'the name that is written under' part
held() { # by a run
    local status=0
    printf 'emass lock\nheld 1\nbeat 1\nmade 0\npid 77\nhost elsewhere\nboot 0-0\nsince 2026-01-01T00:00:00Z\njob 5\n' >c.h5.lock
    cp c.h5 before.h5
    (sleep 2; sed -i 's/^beat 1/beat 2/' c.h5.lock) &
    limited "$emass" convert small.csv c.h5 --overwrite >out.txt 2>err.txt || status=$?
    cat err.txt
    wait
    rm c.h5.lock
    [ "$status" = 2 ] && [ ! -s out.txt ] && grep -q 'c.h5 is in use by a run on elsewhere' err.txt && cmp before.h5 c.h5
}
check 'an output that somebody holds' held
going_on() { # of a run
    cp c.h5 going.h5 && : >going.h5.checkpoint
    refused -E 'going.h5 belongs to a run that can be resumed' "$emass" convert small.csv going.h5 --overwrite && rm going.h5*
}
check 'an output with a checkpoint' going_on
printf '1,2\nx,4\n' >bad.csv
bad_input() { refused -E 'bad.csv:2: found .x. for column 1' convert 2 bad.csv bad.h5 && [ ! -e bad.h5 ] && [ ! -e bad.h5.part ]; }
check 'bad input' bad_input
check 'no such format' refused -E 'format=lbsvm' "$emass" convert small.csv e.h5 --format lbsvm
check 'one argument' refused -E 'expected IN OUT' "$emass" convert small.csv
fails() { EMASS_FAULT=$1 fails_with 1 -E 'injected|memory' convert 2 sparse.svm f.h5 && [ ! -e f.h5 ] && [ ! -e f.h5.part ]; }
check 'a write that fails' fails hdf5-write:0:3
check 'no memory on a rank' fails allocate:1:30

# ---- a damaged table ----
if "$python" -c 'import h5py' 2>/dev/null; then
    damage() { # STATEMENT: on t = the table of a copy
        cp sparse.svm.h5 damaged.h5
        "$python" -c "import h5py; f = h5py.File('damaged.h5', 'r+'); t = f['table']; $1; f.close()"
    }
    damaged() { # PATTERN STATEMENT
        damage "$2" && refused -E "$1" convert 2 damaged.h5 g.h5
    }
    check 'another number' damaged 'damaged or was changed' "t['value'][7] = 3"
    check 'not a number' damaged 'damaged.h5:4: found nan' "t['value'][7] = float('nan')"
    check 'a column out of range' damaged 'damaged.h5:4: found columns' "t['column'][7] = 99"
    check 'starts that descend' damaged 'damaged.h5:4: found starts' "t['start'][4] = 1"
    check 'a start out of range' damaged 'found .*start' "t['start'][3000] = 10**12"
    check 'no names' damaged 'without .name' "del t['name']"
    check 'too few labels' damaged 'response' "del t['response']; t['response'] = [1.0, 2.0]"
    check 'no values' damaged 'without .value' "del t['value']"
    check 'a link to elsewhere' damaged 'link' "del t['value']; t['value'] = h5py.ExternalLink('x.h5', '/x')"
else
    skip 'damaged tables' 'no analysis/venv: make analysis/venv/ready'
fi
printf 'a,colour,y\n1,red,0\n2,blue,1\n' >colours.csv
check 'text is refused, and what to do is said' refused -E "'red' for column colour, expected a number .*factors" \
    "$emass" convert colours.csv colours.h5
finish
