#!/usr/bin/env bash
# Wrong circumstances of `emass convert` of text and counts, and of `emass topics`: each ends with one
# line and status 2, or 1 where the disk fails, and leaves no file and no changed one.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
python=$(cd "$(dirname "$0")/../.." && pwd)/analysis/venv/bin/python
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0
mkdir out

said() { # STATUS TEXT COMMAND...: one line, and nothing new in the folder out
    local expected=$1 text=$2 status=0 before
    shift 2
    before=$(ls -l out)
    limited "$@" >found 2>why || status=$?
    cat why
    [ "$status" = "$expected" ] && [ "$(wc -l <why)" = 1 ] && grep -qF -- "$text" why && [ "$(ls -l out)" = "$before" ] && return
    rm -f out/*
    return 1
}
refuses() { said 2 "$@"; }
text() { # TEXT INPUT OPTION...
    check "$2: $1" refuses "$1" "$emass" convert "$2" out/bad.h5 --min-documents 1 --max-share 1 "${@:3}"
}
reads() { # DOCUMENTS INPUT OPTION...
    local n=$1
    rm -f good.h5
    limited "$emass" convert "$2" good.h5 --min-documents 1 --max-share 1 "${@:3}" >found && cat found && grep -q "^# documents  $n," found
}
counts() { # TEXT NAME CONTENT OPTION...: of Matrix Market below its first line
    printf '%%%%MatrixMarket matrix coordinate real general\n%b' "$3" >"$2.mtx"
    check "$2: $1" refuses "$2.mtx:$1" "$emass" convert "$2.mtx" out/bad.h5 "${@:4}"
}

# ---- files of text
printf 'body,id\nhello world,1\n,2\n' >empty.csv
printf '\xef\xbb\xbfbody,id\r\nhello world,1\r\nbye now,2\r\n' >bom.csv
printf '\xef\xbb\xbf{"body":"hello world"}\r\n\r\n{"body":"bye"}\r\n' >bom.jsonl
check 'a row without text' reads 2 empty.csv --text body --name id
check 'a mark of the byte order, and CRLF' reads 2 bom.csv --text body --name id
check 'the same of JSON lines' reads 2 bom.jsonl --text body
printf 'body\nhel\0lo\n' >zero.csv
text 'zero.csv:2: found a binary file' zero.csv --text body
for value in null 3 true '[1]' '{"a": 1}'; do
    printf '{"body": "hello"}\n{"body": %s}\n' "$value" >value.jsonl
    text "value.jsonl:2: found $(sed 's/3/a number/; s/\[1\]/a list/; s/{.*/an object/' <<<"$value") as member 'body', expected a text" value.jsonl --text body
done
printf '{"body": "hello"}\n{"text": "hello"}\n' >without.jsonl
text "without.jsonl:2: found nothing as member 'body', expected a text" without.jsonl --text body
printf '{"body": "hello"}\n{"body": "un' >cut.jsonl
text 'cut.jsonl:2: found premature end of input' cut.jsonl --text body
seq 1 60000 | sed 's/^/word/' >words.txt
for pack in gzip xz; do
    end=${pack/gzip/gz}
    $pack -kf words.txt
    for cut in 10 5000 -4; do
        head -c "$cut" "words.txt.$end" >"cut$cut.txt.$end"
        text "found a truncated or damaged $pack file" "cut$cut.txt.$end" --format text
    done
done
: >nothing.txt
printf '\n\n' >blank.txt
text 'found no documents' nothing.txt --format text
text 'found no documents' blank.txt --format text
mkfifo pipe
text 'pipe: found a FIFO, expected a regular file' pipe --format text
awk 'BEGIN { printf "{\"body\": \""; for (i = 0; i < 8000000; i++) printf "longer words "; print "\"}" }' >long.jsonl # 104 MB
check 'a line of 100 MB' reads 1 long.jsonl --text body
rm long.jsonl

# ---- folders
mkdir -p folder/a folder/b
for i in $(seq 2000); do [ $((i % 7)) = 0 ] && : >"folder/a/$i" || echo "hello word$i" >"folder/a/$i"; done
echo 'a name' >folder/b/$'two\nlines'
echo 'a name' >folder/b/$'\xe9'
check 'thousands of files, empty ones and odd names among them' reads 2002 folder --format text
names() { [ "$("$python" -c 'import h5py; print(b" ".join(h5py.File("good.h5")["table/document"][-2:]).decode())')" = 'b/two\nlines b/\xe9' ]; }
if [ -x "$python" ]; then check 'their names' names; else skip 'their names' 'no analysis/venv'; fi
ln -s self folder/b/self
text 'folder/b/self: found a link to no file' folder --format text
ln -sfn .. folder/b/self
text 'folder/b/self: found a link to a folder that it is in' folder --format text
rm folder/b/self
printf 'x\0y' >folder/b/zero
text 'folder/b/zero:1: found the byte 0x00, expected text in UTF-8, as in 2002 of 2003 files' folder --format text
truncate -s 65M folder/b/zero
text 'folder/b/zero: found 68157440 bytes, expected a document of at most 67108864' folder --format text
rm folder/b/zero

# ---- rights, which root has anyway
anybody=(setpriv --reuid=65534 --regid=65534 --clear-groups "$scratch/anyone/emass") # not as root
denied() { # TEXT PATH MODE ARGUMENT...
    local mode status=0
    mode=$(stat -c %a "$2")
    chmod "$3" "$2"
    if [ "$(id -u)" = 0 ]; then refuses "$1" "${anybody[@]}" "${@:4}"; else refuses "$1" "$emass" "${@:4}"; fi || status=$?
    chmod "$mode" "$2"
    return "$status"
}
mkdir anyone && cp "$emass" anyone/emass && chmod 755 "$scratch" && chmod 777 out
if { [ "$(id -u)" = 0 ] && "${anybody[@]}" --version; } >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    check 'a file that may not be read' denied 'words.txt: could not open: Permission denied' words.txt 0200 convert words.txt out/bad.h5 --format text
    check 'a folder' denied 'folder/b: Permission denied' folder/b 0300 convert folder out/bad.h5 --format text
    check 'a file of a folder' denied 'folder/a/1: Permission denied' folder/a/1 0200 convert folder out/bad.h5 --format text
    check 'a folder that may not be written' denied 'out/bad.h5: cannot be written: out/: Permission denied' out 0555 convert words.txt out/bad.h5 --format text
else
    skip 'rights' 'this user is root, and no other one can run the program'
fi

# ---- counts
counts "3: found '2.5', expected a count" half '1 3 1\n1 1 2.5\n'
counts "3: found '-1', expected a count" negative '1 3 1\n1 1 -1\n'
counts "3: found '0', expected a count" zero '1 3 1\n1 1 0\n'
counts "3: found '99999999999', expected a count" huge '1 3 1\n1 1 99999999999\n'
counts "4: found '3', expected a document's number, an integer from 1 to 2" row '2 3 2\n1 1 1\n3 1 1\n'
counts "3: found '4', expected a word's id, an integer from 1 to 3" column '2 3 1\n1 4 1\n'
counts '3: found the end of the file after 1 entries, expected 2' few '2 3 2\n1 1 1\n'
counts '4: found more lines after 1 entries' many '2 3 1\n1 1 1\n2 1 1\n'
counts "2: found '0', expected the number of rows" no_rows '0 3 0\n'
counts "2: found '0', expected the number of columns" no_columns '2 0 0\n'
counts "2: found '0', expected the number of entries" no_entries '2 3 0\n'
counts '1: found the end of the file' no_numbers ''
printf 'a\nb\na\n' >twice.words
check 'a word twice' refuses "twice.words:3: found 'a' again" "$emass" convert row.mtx out/bad.h5 --vocabulary twice.words
printf '%%%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 3\n' >one.mtx
one() { limited "$emass" convert one.mtx one.h5 >found && grep -q '^# documents  1, 0' found && grep -q '^# words      1$' found; }
check 'one document of one word' one

# A file that changes while it is read: the fault stops the second pass for seconds, and the output is
# begun between the passes. As many documents, words and tokens come, but others.
changes() {
    local pid status=0
    awk 'BEGIN { for (d = 0; d < 300000; d++) print "2 " d % 7 ":1 " 7 + d % 5 ":2" }' >changes.ldac
    EMASS_FAULT=data-slow:0:3 "$emass" convert changes.ldac out/bad.h5 --format lda-c >found 2>why &
    pid=$!
    while [ ! -e out/bad.h5.part ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    printf '2 2:1 11:2\n' | dd of=changes.ldac bs=1 seek=$(($(stat -c %s changes.ldac) - 11)) conv=notrunc status=none # was 0:1
    wait "$pid" || status=$?
    cat why
    [ "$status" = 2 ] && grep -q 'changes.ldac: found other documents when it was read again' why && [ -z "$(ls out)" ]
}
check 'counts that change' changes

# ---- topics
cat >run.yaml <<'YAML'
model: {name: lda, data: corpus.h5, topics: 20}
run: {chains: 2, warmup: 10, draws: 10}
YAML
awk 'BEGIN { for (d = 0; d < 1500; d++) for (i = 0; i < 40; i++) printf "w%dx%s", (7 * d + 13 * i) % 997, i < 39 ? " " : "\n" }' >documents.txt
begins() { "$emass" convert documents.txt corpus.h5 --format text >found && limited "$emass" run run.yaml --quiet --output run.h5 >found; }
check 'a run' begins
topics_refuse() { # TEXT FILE
    check "mixtures of $2" refuses "$1" "$emass" topics run.h5 --documents "$2" --output out/bad.h5
}
head -c 100000 corpus.h5 >cut.h5
topics_refuse 'cut.h5: expected an HDF5 file: truncated file' cut.h5
topics_refuse 'run.h5: found no dataset /table or X, expected one' run.h5
topics_refuse 'documents.txt:1: found' documents.txt
topics_refuse 'missing.h5: could not open' missing.h5
check 'words like those of a run' refuses 'run.h5: found no dataset /table or X' "$emass" convert documents.txt out/bad.h5 --format text --like run.h5
twice() { # the first to end has the file, which the other one leaves as it is
    local pid first=0 second=0
    "$emass" topics run.h5 "$@" --output out/twice.h5 >first.why 2>&1 &
    pid=$!
    "$emass" topics run.h5 "$@" --output out/twice.h5 >second.why 2>&1 || second=$?
    wait "$pid" || first=$?
    cat first.why second.why
    [ $((first + second)) = 2 ] && [ "$(cat first.why second.why)" = 'emass: out/twice.h5: found a file, expected a new name for --output' ] &&
        [ "$(ls out)" = twice.h5 ] && rm out/twice.h5
}
check 'topics, twice at once' twice
check 'mixtures, twice at once' twice --documents corpus.h5

full() { # COMMAND...: with room for less than it writes, and an old page that stays
    local status=0
    mount -t tmpfs -o size="$1" tmpfs out || return 1
    cp page.html report.html out/ && head -c 10G /dev/zero >out/fill 2>/dev/null
    said 1 'No space left on device' "${@:2}" && cmp page.html out/page.html && cmp report.html out/report.html || status=$?
    umount out
    return "$status"
}
"$emass" topics run.h5 --html page.html && "$emass" report run.h5 --output report.html >found
if mount -t tmpfs -o size=1m tmpfs out 2>/dev/null; then
    umount out
    check 'a full disk: topics' full 100k "$emass" topics run.h5 --output out/bad.h5
    check 'mixtures' full 100k "$emass" topics run.h5 --documents corpus.h5 --output out/bad.h5
    check 'their lines' full 100k sh -c "$emass topics run.h5 --documents corpus.h5 >out/fill"
    check 'a page that is there' full 100k "$emass" topics run.h5 --html out/page.html
    check 'a report' full 100k "$emass" report run.h5 --output out/bad.html
    check 'one of a run' full 100k "$emass" run run.yaml --quiet --output again.h5 --report out/report.html
    check 'a corpus' full 100k "$emass" convert documents.txt out/bad.h5 --format text
else
    skip 'full disks' 'tmpfs cannot be mounted'
fi
finish
