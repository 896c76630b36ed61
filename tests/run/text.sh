#!/usr/bin/env bash
# From text to topics: documents in every form become one corpus, whose topics are found; matrices
# of Matrix Market and AnnData too.
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
python=$(cd "$(dirname "$0")/../.." && pwd)/analysis/venv/bin/python
cd "$scratch" || exit 1
export SOURCE_DATE_EPOCH=0

# 400 documents, each of one of two subjects with words of their own, and words that all have.
awk 'function below(n) { seed = (seed * 16807) % 2147483647; return seed % n }
    function word(list, m, p) { m = split(list, p, " "); return p[1 + below(m)] }
    BEGIN {
        seed = 7
        subject[0] = "galaxy star planet orbit telescope comet lunar eclipse"
        subject[1] = "goal match referee stadium penalty league coach defender"
        for (d = 1; d <= 400; d++) {
            s = d % 2; text = ""
            for (i = 0; i < 30; i++) text = text (i % 3 ? word(subject[s]) : word("the and of report Said")) " "
            if (s) text = text "New York."
            print text >"lines.txt"
            printf "%d,\"%s, \"\"quoted\"\"\n\",%s\n", d, text, s ? "sport" : "sky" >"rows.part"
            printf "{\"id\": \"%d\", \"body\": \"%s quoted\", \"class\": \"%s\"}\n", d, text, s ? "sport" : "sky" >"rows.jsonl"
        }
    }'
{ echo 'id,body,class' && cat rows.part; } >rows.csv
mkdir -p folder/sport folder/sky
awk '{ print >("folder/" (NR % 2 ? "sport" : "sky") "/" sprintf("%03d", NR)) }' lines.txt

convert() { limited "$emass" convert "$@"; }
hash_of() { sed -n 's/^# hash *//p' "$1"; }

lines() { convert lines.txt lines.h5 --format text --max-share 0.6 >lines.found && cat lines.found && grep -q '^# documents  400, 0' lines.found; }
check 'lines of a file' lines
packed() { gzip -kf lines.txt && convert lines.txt.gz packed.h5 --format text --max-share 0.6 >packed.found && [ "$(hash_of packed.found)" = "$(hash_of lines.found)" ]; }
check 'packed: the same' packed
files() { convert folder folder.h5 --format text --max-share 0.6 >folder.found && grep -q '^# documents  400, 0' folder.found; }
check 'files of folders' files
table() { convert rows.csv csv.h5 --text body --name id --label class --max-share 0.6 >csv.found && cat csv.found; }
check 'a table with quoted fields over lines' table
json() { convert rows.jsonl json.h5 --text body --max-share 0.6 >json.found && [ "$(hash_of json.found)" = "$(hash_of csv.found)" ]; }
check 'JSON lines: the same corpus' json
phrases() { convert lines.txt phrases.h5 --format text --max-share 0.6 --phrases 0.05 --stop-words none >/dev/null && h5dump -d table/name phrases.h5 | grep -q '"new york'; }
if have h5dump; then
    check 'phrases' phrases
else
    skip 'phrases' 'h5dump (hdf5-tools) is not installed'
fi
new() { # unknown words are counted and dropped
    printf 'The galaxy met a wormhole\nfootball goal\n' >new.txt
    convert new.txt new.h5 --format text --like lines.h5 >new.found && cat new.found &&
        [ "$(grep '^# words' new.found)" = "$(grep '^# words' lines.found)" ] && grep -q '^# dropped    4 of 6 ' new.found
}
check 'new documents by the words of others' new

cat >run.yaml <<'YAML'
model: {name: lda, data: lines.h5, topics: 2}
sampler: {name: lda_gibbs}
run: {chains: 2, warmup: 40, draws: 20}
YAML
topics() { # each topic has the words of one subject first
    limited "$emass" run run.yaml --quiet && limited "$emass" topics run.h5 --words 6 >topics.found && cat topics.found &&
        grep -qE '(star|galaxy|planet|orbit|telescope|comet|lunar|eclipse)( (star|galaxy|planet|orbit|telescope|comet|lunar|eclipse)){5}' topics.found &&
        grep -qE '(goal|match|referee|stadium|penalty|league|coach|defender)( (goal|match|referee|stadium|penalty|league|coach|defender)){4}' topics.found
}
check 'its topics are the subjects' topics

# The corpus of a run may have been replaced: its coherence is not that of another.
replaced() {
    sed 's/lines.h5/replaced.h5/' run.yaml >replaced.yaml && cp lines.h5 replaced.h5 &&
        limited "$emass" run replaced.yaml --quiet --overwrite --output old.h5 && cp "$1" replaced.h5 && says 0 "$2" "$emass" topics old.h5
}
convert lines.txt few_words.h5 --format text --max-words 5 >few_words.found
sed 's/galaxy/nebula/g' lines.txt >other.txt
convert other.txt other.h5 --format text --max-share 0.6 >other.found
check 'a corpus with fewer words in its place' replaced few_words.h5 'coherence needs the corpus of the run: ./replaced.h5: found a corpus of 5 words, expected 18 as in old.h5'
check 'one with another word' replaced other.h5 "coherence needs the corpus of the run: ./replaced.h5: found word"
tac lines.txt >turned.txt
convert turned.txt turned.h5 --format text --max-share 0.6 >turned.found
check 'one of the same words and other documents' replaced turned.h5 "coherence needs the corpus of the run: ./replaced.h5: found other documents, or other test documents, than those of old.h5"
with_test() { # TEST: that of the run is lines.h5, and TEST takes its place
    sed 's/lines.h5/replaced.h5, test: test.h5/' run.yaml >with_test.yaml && cp turned.h5 replaced.h5 && cp lines.h5 test.h5 &&
        limited "$emass" run with_test.yaml --quiet --overwrite --output with_test.h5 && cp "$1" test.h5 &&
        limited "$emass" topics with_test.h5 >with_test.found 2>&1 && cat with_test.found
}
same_test() { with_test lines.h5 && ! grep -q '^emass: note' with_test.found; }
check 'the documents of a run with a test' same_test
other_test() { with_test new.h5 && grep -q 'note: coherence needs .*other test documents' with_test.found; }
check 'other test documents' other_test
check 'a folder that is not there' says 2 'nowhere/phi.h5: cannot be written' "$emass" topics run.h5 --output nowhere/phi.h5

check 'no such column' says 2 "rows.csv:1: found no column 'text' among 3 columns" "$emass" convert rows.csv bad.h5 --text text
printf 'a,b\n1,"x\n' >open.csv
check 'an open quote' says 2 'expected its closing quote' "$emass" convert open.csv bad.h5 --text b
check 'no words are left' says 2 'found no word in 500 or more' "$emass" convert lines.txt bad.h5 --format text --min-documents 500
check 'an option without its text' says 2 'expected --text COLUMN or --format text' "$emass" convert lines.txt bad.h5 --phrases 3
check 'a share that is none' says 2 'found --max-share=2' "$emass" convert lines.txt bad.h5 --format text --max-share 2
printf 'plain words\ncaf\xe9\n' >latin.txt
printf '\xff\xfea\x00\n\x00' >utf16.txt
check 'text that is not UTF-8' says 2 'latin.txt:2: found the byte 0xE9, expected text in UTF-8 (the file is not UTF-8' "$emass" convert latin.txt bad.h5 --format text
check 'UTF-16' says 2 '(iconv -f UTF-16 -t UTF-8' "$emass" convert utf16.txt bad.h5 --format text
check 'stop words that are not UTF-8' says 2 'latin.txt:2: found the byte 0xE9' "$emass" convert lines.txt bad.h5 --format text --stop-words latin.txt
printf 'body,body\na,b\n' >twice.csv
check 'two columns of that name' says 2 "twice.csv:1: found two columns called 'body', expected one" "$emass" convert twice.csv bad.h5 --text body

printf 'body,n\n5" disk and words,1\nsix feet words,2\n7" disk words,3\n' >inches.csv
inches() { convert inches.csv inches.h5 --text body --min-documents 1 --max-share 1 >inches.found && grep -q '^# documents  3,' inches.found; }
check 'quotes within fields' inches
printf 'a,b\n1,"x\ny",z\n' >wide.csv
check 'the line where a row begins' says 2 'wide.csv:2: found 3 columns' "$emass" convert wide.csv bad.h5 --text b
printf '{"id": 7, "body": "cats"}\n{"id": 2.5, "body": "cats"}\n{"body": "cats"}\n' >numbers.jsonl
numbers() { # as names; no name is an empty one
    convert numbers.jsonl numbers.h5 --text body --name id --min-documents 1 --max-share 1 >numbers.found &&
        [ "$("$python" -c 'import h5py; print(b"|".join(h5py.File("numbers.h5")["table/document"][:]).decode())')" = '7|2.5|' ]
}
if [ -x "$python" ]; then check 'names that are numbers' numbers; else skip 'names that are numbers' 'no analysis/venv'; fi
check 'a name that no object has' says 2 "numbers.jsonl:3: found no member 'nr' up to this line" "$emass" convert numbers.jsonl bad.h5 --text body --name nr
printf '{"id": [7], "body": "cats"}\n' >list.jsonl
check 'a name that is a list' says 2 "list.jsonl:1: found a list as member 'id', expected a text or a number" "$emass" convert list.jsonl bad.h5 --text body --name id
printf '{"body": "a\\u0000b"}\n' >zero.jsonl
check 'a zero in a text' says 2 'zero.jsonl:1: found the character \u0000 in a text' "$emass" convert zero.jsonl bad.h5 --text body
printf 'cats\n%05000d\n' 0 >long.words
printf '2\n2\n1\n1 1 1\n' >two.docword
check 'a word that is too long' says 2 'long.words:2: found a word of 5000 bytes, expected at most 4096' "$emass" convert two.docword bad.h5 --vocabulary long.words
check 'words that are not UTF-8' says 2 'latin.txt:2: found the byte 0xE9' "$emass" convert two.docword bad.h5 --vocabulary latin.txt
printf 'name,body\n%05000d,cats\n' 0 >long.csv
check 'a name that is too long' says 2 'long.csv: found a name of 5000 bytes of document 1, expected at most 4096' "$emass" convert long.csv bad.h5 --text body --name name --min-documents 1 --max-share 1
check 'options of text with counts' says 2 'found an option of documents in text' "$emass" convert two.docword bad.h5 --format docword --min-documents 2
check 'too many words' says 2 'found --max-words=99999999999, expected 1 to 10000000' "$emass" convert lines.txt bad.h5 --format text --max-words 99999999999
check 'an output without a name' says 2 'convert: found nothing after lines.txt, expected a value' "$emass" convert lines.txt '' --format text

# Folders: links are followed; what is no text is named.
ln -s folder link
mkdir linked && ln -s ../folder/sport/001 linked/one && ln -s ../folder/sky linked/more
links() { convert link link.h5 --format text --max-share 0.6 >link.found && [ "$(hash_of link.found)" = "$(hash_of folder.found)" ]; }
check 'a link to a folder' links
links_within() { convert linked linked.h5 --format text --max-share 1 >linked.found && cat linked.found && grep -q '^# documents  201,' linked.found; }
check 'links in a folder' links_within
mkdir round && ln -s . round/again && cp lines.txt round
check 'a folder in itself' says 2 'round/again: found a link to a folder that it is in' "$emass" convert round bad.h5 --format text
mkdir lost && ln -s nowhere lost/file
check 'a link to nothing' says 2 'lost/file: found a link to no file, expected a document' "$emass" convert lost bad.h5 --format text
mkdir odd && cp utf16.txt odd && cp lines.txt odd/a.txt
check 'UTF-16 in a folder' says 2 'odd/utf16.txt: found text in UTF-16, expected text in UTF-8 (iconv' "$emass" convert odd bad.h5 --format text
check 'an output in the folder' says 2 'folder/sky/o.h5: found an output in the folder that is read, folder' "$emass" convert folder folder/sky/o.h5 --format text
packed_twice() { gzip -c packed.part >twice.gz && says 2 'twice.gz:1: found a file compressed by gzip' "$emass" convert twice.gz bad.h5 --format text; }
gzip -c lines.txt >packed.part
check 'packed twice' packed_twice

# The option that helps is named wherever documents are given for something else.
printf 'cat cat dog\n' >cats.txt
check 'text without an option' says 2 '(documents: --format text)' "$emass" convert cats.txt bad.h5
printf 'id,body\n1,cats and dogs\n' >short.csv
check 'a table of text without an option' says 2 'documents: --text COLUMN or --format text' "$emass" convert short.csv bad.h5
check 'one of quoted fields over lines' says 2 '(documents: --text COLUMN)' "$emass" convert rows.csv bad.h5
check 'a folder without an option' says 2 'folder: found a folder, expected a file (a folder of documents: --format text)' "$emass" convert folder bad.h5
given() { says 2 "$1" "$emass" check run.yaml --set "model.data=$2"; }
check 'text as data' given 'emass convert makes a corpus of text: --format text, or --text COLUMN of a table' lines.txt
check 'a table as data' given 'emass convert makes a corpus of text: --format text, or --text COLUMN of a table' rows.csv
check 'a folder as data' given 'folder: found a folder, expected a corpus (emass convert --format text' folder
printf 'PK\003\004\000\000' >counts.npz
check 'a matrix of scipy as data' given 'emass.write_corpus' counts.npz
convert lines.txt few.h5 --format text --max-words 5 >few.found
check 'a corpus of more words' says 2 'lines.h5: found a corpus of 18 words, expected at most 5 (emass convert --like CORPUS.h5' \
    "$emass" check run.yaml --set model.data=few.h5 --set model.test=lines.h5
convert lines.txt many.h5 --format text --max-share 1 --stop-words none >many.found
check 'the same of new documents' says 2 'words, expected at most 18 (emass convert --like CORPUS.h5' \
    "$emass" topics run.h5 --documents many.h5
check 'new documents of text' says 2 '(emass convert --like CORPUS.h5 makes a corpus of text, with the words of that one: --format text, or' \
    "$emass" topics run.h5 --documents lines.txt
check 'nothing is left behind' test ! -e bad.h5

# ---------------------------------------------------------------- matrices

cat >rows.mtx <<'MTX'
%%MatrixMarket matrix coordinate integer general
% documents x words
3 4 5
1 1 2
1 4 1
3 2 1
3 3 2
3 4 1
MTX
cat >columns.mtx <<'MTX'
%%MatrixMarket matrix coordinate real general
4 3 5
1 1 2.0e+00
4 1 1
2 3 1
3 3 2
4 3 1
MTX
printf '3\n4\n5\n1 1 2\n1 4 1\n3 2 1\n3 3 2\n3 4 1\n' >three.docword
one_matrix() {
    convert rows.mtx a.h5 >a && convert columns.mtx b.h5 --format mtx-columns >b && convert three.docword c.h5 --format docword >c &&
        cat a && grep -q '^# documents  3, 1 of them empty' a && [ "$(hash_of a)" = "$(hash_of b)" ] && [ "$(hash_of a)" = "$(hash_of c)" ]
}
check 'Matrix Market, by rows and by columns' one_matrix
check 'columns that are documents, unsaid' says 2 'expected documents in order (scipy.io.mmwrite(FILE, M.tocsr())' "$emass" convert columns.mtx bad.h5
check 'the other way round' says 2 'expected documents in order (scipy.io.mmwrite(FILE, M.tocsc())' "$emass" convert rows.mtx bad.h5 --format mtx-columns
printf '%%%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1.5\n' >half.mtx
unsigned() { sed '1s/integer/unsigned-integer/' rows.mtx >unsigned.mtx && convert unsigned.mtx u.h5 >u && [ "$(hash_of u)" = "$(hash_of a)" ]; }
check 'unsigned integers' unsigned
check 'a count that is none' says 2 ":3: found '1.5', expected a count" "$emass" convert half.mtx bad.h5
printf '%%%%MatrixMarket matrix array real general\n1 1\n1\n' >dense.mtx
check 'a dense one' says 2 'expected %%MatrixMarket matrix coordinate' "$emass" convert dense.mtx bad.h5

anndata() {
    "$python" - <<'PYTHON' && convert cells.h5ad cells.h5 >cells.found && cat cells.found && grep -q '^# rows       3' cells.found && grep -q gene3 cells.found &&
import h5py, numpy as np
with h5py.File("cells.h5ad", "w") as f:
    for place, kind, ptr, ind in (("X", "csr_matrix", [0, 2, 2, 5], [0, 3, 1, 2, 3]), ("layers/csc", "csc_matrix", [0, 1, 2, 3, 5], [0, 2, 2, 0, 2])):
        x = f.create_group(place)
        x.attrs["encoding-type"] = kind
        x.attrs["shape"] = np.array([3, 4])
        for name, value in (("data", np.array([2, 1, 1, 2, 1], "f4")), ("indptr", ptr), ("indices", ind)):
            x.create_dataset(name, data=value)
    for axis, n in (("obs", 3), ("var", 4)):
        f.create_dataset(axis + "/_index", data=[("cell" if n == 3 else "gene") + str(i) for i in range(n)], dtype=h5py.string_dtype())
PYTHON
        says 2 'found a matrix in compressed columns' "$emass" convert cells.h5ad:/layers/csc bad.h5
}
# The same cells with genes in another order; columns in no order and zeros that are stored; names
# twice; dense; an index that is called otherwise.
write_variants() {
    "$python" - <<'PYTHON'
import h5py, numpy as np
genes = ["gene0", "gene1", "gene2", "gene3"]
def write(name, matrix, genes=genes, index="_index"):
    with h5py.File(name + ".h5ad", "w") as f:
        if isinstance(matrix, np.ndarray):
            f["X"] = matrix
        else:
            x = f.create_group("X")
            x.attrs["encoding-type"] = "csr_matrix"
            x.attrs["shape"] = np.array([3, 4])
            for part, value in zip(("indptr", "indices", "data"), matrix):
                x[part] = np.array(value)
        for axis, names in (("obs", ["cell a", "cell,b", "cell c"]), ("var", genes)):
            f.create_group(axis).attrs["_index"] = index
            f[axis].create_dataset(index, data=names, dtype=h5py.string_dtype())
plain = [0, 2, 2, 5], [0, 3, 1, 2, 3], [2, 1, 1, 2, 1]
write("plain", plain)
write("reordered", plain, genes[::-1])
write("unsorted", ([0, 3, 4, 7], [3, 1, 0, 2, 3, 2, 1], [1, 0, 2, 0, 1, 2, 1]))
write("doubled", ([0, 2, 2, 5], [0, 0, 1, 2, 3], [2, 1, 1, 2, 1]))
write("twice", plain, ["gene0", "gene1", "gene0", "gene3"])
write("dense", np.array([[2, 0, 0, 1], [0, 0, 0, 0], [0, 1, 2, 1]], "f4"))
write("index", plain, index="symbol")
write("logged", (plain[0], plain[1], [1.1, 0.7, 0.7, 1.1, 0.7]))
write("short", ([0, 2, 2, 4], *plain[1:]))
write("late", ([1, 2, 2, 5], *plain[1:]))
write("beyond", ([0, 2, 2, 9], *plain[1:]))
write("descends", ([0, 4, 2, 5], *plain[1:]))
write("two", ([0, 2, 2, 9], [0, 9, 1, 2, 3], plain[2]))
write("real", (np.array([0, 2.5, 2, 5]), *plain[1:]))
write("nothing", (*plain[:2], [0] * 5))
write("unnamed", plain)
with h5py.File("unnamed.h5ad", "a") as f:
    del f["var"]
# The name of the first gene refers to text 2^31 - 1 of the file: length, address, number.
with h5py.File("plain.h5ad") as f:
    at = f["var/_index"].id.get_offset()
damaged = bytearray(open("plain.h5ad", "rb").read())
damaged[at + 12 : at + 16] = b"\xff\xff\xff\x7f"
open("damaged.h5ad", "wb").write(damaged)
with h5py.File("logged.h5ad", "a") as f, h5py.File("plain.h5ad") as counts:
    counts.copy("X", f.create_group("layers"), "counts")
PYTHON
}
both_say() { # TEXT NAME: on one rank and on three
    says 2 "$1" "$emass" convert "$2.h5ad" bad.h5 && says 2 "$1" mpirun -n 3 "$emass" convert "$2.h5ad" bad.h5
}
one_line() { # FILE COMMAND...: HDF5 may crash at it; status 2
    local status=0
    limited "${@:2}" >why 2>&1 || status=$?
    cat why
    [ "$status" = 2 ] && [ "$(wc -l <why)" = 1 ] && grep -q "^emass: .*$1" why
}
any_order() { # and zeros: the same corpus
    convert plain.h5ad plain.h5 >plain.found && convert unsorted.h5ad unsorted.h5 >unsorted.found && convert index.h5ad index.h5 >index.found &&
        cat unsorted.found && [ "$(hash_of plain.found)" = "$(hash_of unsorted.found)" ] && [ "$(hash_of plain.found)" = "$(hash_of index.found)" ]
}
logged() { # X is no counts: the line names the command that reads a layer
    sed 's/lines.h5/logged.h5ad/' run.yaml >logged.yaml &&
        says 2 'logged.h5ad:1: found 1.1 for word 0, expected a count, an integer from 1 to 50000000 (of a layer: emass convert FILE.h5ad:/layers/counts COUNTS.h5)' \
            "$emass" run logged.yaml --quiet --output bad.h5 &&
        convert logged.h5ad:/layers/counts counts.h5 >counts.found && [ "$(hash_of plain.found)" = "$(hash_of counts.found)" ]
}
mixtures_by_name() { # of cells, whose names may have a comma
    sed 's/lines.h5/plain.h5ad/' run.yaml >plain.yaml && limited "$emass" run plain.yaml --quiet --output of_plain.h5 &&
        "$emass" topics of_plain.h5 --documents unsorted.h5ad >cells.csv && cat cells.csv && [ "$(cut -c 1-6 cells.csv | tr '\n' ' ')" = 'docume cell a "cell, cell c ' ] &&
        "$emass" topics of_plain.h5 --documents plain.h5 | cmp - cells.csv &&
        "$emass" topics of_plain.h5 --documents unsorted.h5ad --output cells_of.h5 &&
        [ "$("$python" -c 'import h5py; print(b"|".join(h5py.File("cells_of.h5")["table/document"][:]).decode())')" = 'cell a|cell,b|cell c' ]
}
numbered() { # a config reads a dense matrix as it did: columns are x1, x2, ...
    printf '%s\n' 'model: {name: linear, data: "dense.h5ad:/X", response: x4, columns: [x2, x3]}' >dense.yaml && "$emass" check dense.yaml
}
dense_has_names() { convert dense.h5ad dense.h5 >dense.found && cat dense.found && grep -q '^  gene3 ' dense.found; }
from_anndata() { # read by a run as it is
    sed 's/lines.h5/cells.h5ad/' run.yaml >cells.yaml && limited mpirun -n 2 "$emass" run cells.yaml --quiet --output topics_of_cells.h5
}
if [ -x "$python" ]; then
    check 'AnnData' anndata
    check 'as the data of a run' from_anndata
    check 'more of AnnData' write_variants
    check 'columns in any order, and zeros' any_order
    check 'numbers that are no counts, beside a layer of counts' logged
    check 'streamed too' says 0 '3 documents' "$emass" check run.yaml --set model.data=unsorted.h5ad --set model.stream=true
    check 'mixtures have the names of cells' mixtures_by_name
    check 'genes in another order' says 2 "reordered.h5ad: found word 0 'gene3', expected 'gene0' as in of_plain.h5 (adata[:, names]" "$emass" topics of_plain.h5 --documents reordered.h5ad
    check 'the same of test documents' says 2 "reordered.h5ad: found word 0 'gene3', expected 'gene0'" "$emass" check plain.yaml --set model.test=reordered.h5ad
    check 'a gene twice' says 2 "twice.h5ad: found 'gene0' again as number 3 in var/_index, expected every name once: adata.var_names_make_unique()" "$emass" convert twice.h5ad bad.h5
    check 'the same of a run' says 2 'adata.var_names_make_unique()' "$emass" check run.yaml --set model.data=twice.h5ad --set model.stream=true
    check 'starts before the end' both_say "short.h5ad:3: found starts of entries that do not span all entries" short
    check 'starts after the beginning' both_say "late.h5ad:1: found starts of entries that do not span all entries" late
    check 'starts beyond the end' both_say "beyond.h5ad:3: found a start of entries out of range" beyond
    check 'starts that descend' both_say "descends.h5ad:2: found starts of entries that descend" descends
    check 'the first of two errors' both_say "two.h5ad:1: found columns out of order or range" two
    check 'starts with fractions' both_say 'real.h5ad: found numbers with fractions as' real
    check 'no names of genes' both_say 'unnamed.h5ad: found no list of names at var/_index, expected one of each column' unnamed
    check 'a name that is nowhere' one_line damaged.h5ad "$emass" convert damaged.h5ad bad.h5
    check 'zeros alone' says 2 'nothing.h5ad: found no words in 3 documents' "$emass" check run.yaml --set model.data=nothing.h5ad
    check 'a column twice in a row' says 2 'doubled.h5ad:1: found column 0 twice, expected it once: adata.X.sum_duplicates()' "$emass" convert doubled.h5ad bad.h5
    check 'a dense one has the names of genes' dense_has_names
    check 'and numbers in a config' numbered
    check 'and is no corpus' says 2 'adata.X = scipy.sparse.csr_matrix(adata.X)' "$emass" check run.yaml --set model.data=dense.h5ad
    check 'nor is the table of it' says 2 'adata.X = scipy.sparse.csr_matrix(adata.X)' "$emass" check run.yaml --set model.data=dense.h5
else
    skip 'AnnData' 'no analysis/venv: make analysis/venv/ready'
fi
finish
