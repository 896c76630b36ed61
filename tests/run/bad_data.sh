#!/usr/bin/env bash
# Bad data: one line naming the file and the line, exit status 2, and no file left behind.
# shellcheck disable=SC2317 # functions are called by `check`
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

work=$scratch/work
mkdir "$work"
cd "$work" || exit
printf 'model: {name: logistic, data: table}\nsampler: {name: hmc}\n' >logistic.yaml
printf 'model: {name: logistic, data: table, positive: 99}\nsampler: {name: hmc}\n' >positive.yaml
printf 'model: {name: gaussian, precision: table}\nsampler: {name: hmc}\n' >gaussian.yaml

# Runs on some ranks and looks at what is left: the status, the message, the files.
refuses() { # RANKS CONFIG WHERE WHAT...: "table" WHERE, and WHAT in the message
    local ranks=$1 config=$2 where=$3 status before text piece
    shift 3
    before=$(ls)
    if [ "$ranks" = 1 ]; then
        limited "$emass" run "$config" --output out.h5 >out.txt 2>err.txt
    else
        limited mpirun -n "$ranks" --oversubscribe "$emass" run "$config" --output out.h5 \
            >out.txt 2>err.txt
    fi
    status=$?
    text=$(grep '^emass: ' err.txt)
    echo "status $status, message: $(cat err.txt)"
    [ "$status" = 2 ] && [ ! -s out.txt ] && [ "$(wc -l <<<"$text")" = 1 ] || return 1
    [ "$ranks" != 1 ] || [ "$(messages err.txt | wc -l)" = 1 ] || return 1
    rm out.txt err.txt
    [ "$(ls)" = "$before" ] || return 1
    for piece in "table$where" expected "$@"; do
        case $text in *"$piece"*) ;; *) return 1 ;; esac
    done
}

bad() { # NAME CONTENT WHERE WHAT...
    local name=$1 content=$2
    shift 2
    printf '%b' "$content" >table
    check "$name" refuses 1 logistic.yaml "$@"
}

# ---- rows of columns ----
bad 'an empty file' '' :1: 'empty file'
bad 'a header alone' 'age,y\n' :1: 'only a header'
bad 'a short row' '1,2,0\n3,1\n' :2: 'found 2 columns' 'expected 3'
bad 'a long row' '1,2,0\n3,4,1,5\n' :2: 'found 4 columns' 'expected 3'
bad 'text in numbers' 'age,y\n1,0\nold,1\n' :3: "found 'old' for column age"
bad 'names or a row' '2020,2021\n1,0\n2,1\n' :1: "found a first line with '2020'" 'header'
bad 'text beside numbers' 'x,2021\n1,0\n2,1\n' :1: "found 'x' for column 1" 'header: yes takes the first line as names'
bad 'an empty field' '1,2,0\n3,,1\n' :2: 'found nothing for column 2'
bad 'a missing response' '1,2,0\n3,4,\n' :2: 'found nothing for column 3'
bad 'NaN' '1,0\nNaN,1\n' :2: "found 'NaN'" 'finite number'
bad 'infinity' '1,0\n-inf,1\n' :2: "found '-inf'" 'finite number'
bad 'a number too large' '1,0\n1e999,1\n' :2: "found '1e999'" 'finite number'
bad 'an open quote' '1,0\n"2,1\n' :2: 'quote that is not closed on its line'
bad 'a binary file' '1,0\n\0\001\002\n' :2: 'binary file'

bad 'thousands' '"1,000",0\n2,1\n' :1: "found '1,000' for column 1" '(write 1000, without separators of thousands)'
bad 'millions between semicolons' 'x;y\n-1,234,567.5;0\n' :2: '(write -1234567.5, without separators of thousands)'
bad 'thousands or a decimal comma' 'x;y\n1,000;0\n' :2: 'write 1000' 'with decimal: comma'
bad 'a decimal comma between commas' 'x,y\n"1,5",0\n' :2: '(write 1.5: decimal: comma is for columns between semicolons'
by_comma() { # NAME CONTENT WHAT...: between semicolons, with decimal commas
    local name=$1 content=$2
    shift 2
    sed '/^model:/s/}$/, decimal: comma}/' logistic.yaml >comma.yaml
    printf '%b' "$content" >table
    check "$name" refuses 1 comma.yaml "$@"
}
by_comma 'a point among decimal commas' 'x;y\n12,5;0\n1.000;1\n' :3: "found '1.000' for column x" 'a number with a decimal comma (write 1000 or 1,000)'
by_comma 'one that is a decimal point' 'x;y\n12,5;0\n-1.5;1\n' :3: "found '-1.5'" '(write -1,5)'
by_comma 'points and a comma' 'x;y\n12,5;0\n1.234.000,5;1\n' :3: '(write 1234000,5, without separators of thousands)'
bad 'a minus of Unicode' 'x,y\n1,0\n\xe2\x88\x922,1\n' :3: 'for column x' '(it has U+2212 MINUS SIGN: write -2)'
bad 'a blank that does not break' 'x,y\n1,0\n\xc2\xa02,1\n' :3: "found '\\u00a02'" '(it has U+00A0 NO-BREAK SPACE: write 2)'
bad 'a comment' '# made by me\nx,y\n1,0\n' :1: 'begins with #' "sed '/^#/d'" 'header: yes'
bad 'a comment like names' '#made by me\nx,y\n1,0\n' :2: 'found 1 columns' "sed '/^#/d'"
bad 'a comment of as many words as columns' '#made by me\nx w y\n1 2 0\n' :2: "found 'x' for column #made" "sed '/^#/d'"
bad 'a comment of one word before blanks' '#made_by_me\nx y\n1 0\n' :2: 'found 2 columns' "sed '/^#/d'"
bad 'a comment with a number' '#made by me, 2024\nx,y\n1,0\n' :1: "found '#made by me' for column 1" "sed '/^#/d'"

# ---- other files ----
bad 'lines that end with CR' 'x,y\r1,0\r2,1\r' :1: 'a carriage return alone' "tr '\\r' '\\n'"
bad 'Parquet' 'PAR1\x15\0\x15\n' :1: 'found a Parquet file' 'pandas.read_parquet'
bad 'Feather' 'ARROW1\0\0\n' :1: 'found an Arrow (Feather) file' 'pandas.read_feather'
bad 'a workbook' 'PK\x03\x04\x14\n' :1: 'found a zip file, such as .xlsx' 'save a sheet of a workbook as CSV'
bad 'an old workbook' '\xD0\xCF\x11\xE0\n' :1: 'found a workbook of Excel (.xls)'
bad 'bzip2' 'BZh91AY&SY\n' :1: 'compressed by bzip2' 'bzip2 -dk FILE'
bad 'zstd' '\x28\xB5\x2F\xFD\x04\n' :1: 'compressed by zstd' 'zstd -d FILE'
bad 'UTF-16' '\xFF\xFEx\0,\0y\0\n' :1: 'found text in UTF-16, expected text in UTF-8' 'iconv -f UTF-16'

# ---- LIBSVM ----
bad 'a minus of Unicode for a value' '1 1:0.5\n0 1:1 2:\xe2\x88\x920.3\n' :2: 'for a value' '(it has U+2212 MINUS SIGN: write -0.3)'
bad 'and for a label' '\xe2\x88\x921 1:0.5\n1 1:1\n' :1: 'for the label' '(it has U+2212 MINUS SIGN: write -1)'
bad 'index 0' '1 1:1\n0 0:1\n' :2: "index '0'" 'from 1'
bad 'a negative index' '1 1:1\n0 -3:1\n' :2: "index '-3'" 'from 1'
bad 'an index out of range' '1 1:1\n0 99999999999:1\n' :2: "index '99999999999'"
bad 'indices that do not ascend' '1 1:1\n0 5:1 3:1\n' :2: 'index 3 after 5'
bad 'no value' '1 1:1\n0 3\n' :2: "found '3'" 'index:value'
bad 'a label that is text' '1 1:1\nyes 3:1\n' :2: "found 'yes' for the label"

# ---- labels ----
bad 'labels 1 and 2' '5.5,1\n6,2\n' :2: 'label 2 among labels 1, 2' 'positive'
bad 'a third label' '5.5,0\n6,1\n7,3\n' :3: 'label 3 among labels 0, 1, 3'
bad 'one label' '5,0\n6,0\n' :2: 'label 0 in all rows'
for labels in 2 6 7 30; do # six and more are not all listed
    printf '%s,1\n' $(seq "$labels") | awk -F, '{print $2 "," $1}' >table
    check "positive: 99 where rows have $labels other labels" \
        refuses 1 positive.yaml :1: 'label 1 among' 'expected 99 (positive)'
    printf '%s\n' "5,99" >>table
    check "positive: 99 in the last of $labels labels" \
        limited "$emass" check positive.yaml
done
printf '5,99\n6,99\n' >table
check 'positive: 99 is all there is' refuses 1 positive.yaml :2: 'label 99 in all rows' 'and others'

# ---- files ----
rm -f table
check 'a missing file' refuses 1 logistic.yaml : 'No such file'
mkdir table
check 'a folder' refuses 1 logistic.yaml : 'found a folder'
rmdir table
printf '1,0\n2,1\n3,0\n4,1\n' | gzip | head -c 20 >table
check 'a truncated gzip file' refuses 1 logistic.yaml : 'truncated or damaged'
head -c 80000000 /dev/zero | tr '\0' 1 | gzip -1 >table
check 'an endless line' refuses 1 logistic.yaml :1: 'a line of more than'
rm table

# ---- matrices ----
printf '1,2\n2,1\n' >table
check 'a matrix that is not positive definite' refuses 1 gaussian.yaml :1: 'not positive definite'
printf '1,2\n3,9\n' >table
check 'a matrix that is not symmetric' refuses 1 gaussian.yaml :2: 'symmetric'

# ---- many ranks say it once ----
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
printf '1,2,0\n3,1\n' >table
check 'one line from three ranks' refuses 3 logistic.yaml :2: 'found 2 columns'
printf '2020,2021\n1,0\n2,1\n3,1\n' >table
check 'names or a row, on three ranks' refuses 3 logistic.yaml :1: "found a first line with '2020'"
export EMASS_FAULT=data:1
printf '1,0\n2,1\n' >table
check 'one rank that cannot read' refuses 2 logistic.yaml :1: 'EMASS_FAULT'
unset EMASS_FAULT

# A column that is constant is only a warning, and once.
printf 'a,b\033[2J,y\n1,5,0\n2,5,1\n3,5,0\n4,5,1\n' >table # and nothing that a terminal would obey
warns() {
    limited mpirun -n 2 --oversubscribe "$emass" run logistic.yaml --output out.h5 \
        --set run.warmup=20 --set run.draws=20 --set run.chains=2 >/dev/null 2>err.txt || return 1
    cat err.txt
    [ "$(grep -cF 'warning: table: column b\x1b[2J: all values are equal' err.txt)" = 1 ]
}
check 'a constant column is one warning' warns
printf 'a,y\n1,5\n2,5\n3,5\n' >table
flat_response() { # of an unknown sigma; a check samples nothing
    printf 'model: {name: linear, data: table}\n' >linear.yaml
    limited mpirun -n 2 --oversubscribe "$emass" check linear.yaml >/dev/null 2>err.txt || return 1
    cat err.txt
    [ "$(grep -c 'warning: table: response: all values are equal' err.txt)" = 1 ]
}
check 'a constant response is one warning' flat_response

# Columns that others determine are named, as R's lm names them; trends of years are not.
names_columns() { # TIMES WORDS OPTION...
    limited mpirun -n 2 --oversubscribe "$emass" check linear.yaml --set 'model.formula=y ~ .' "${@:3}" >/dev/null 2>err.txt || return 1
    cat err.txt
    [ "$(grep -c 'is a linear combination of' err.txt)" = "$1" ] && { [ -z "$2" ] || grep -F "$2" err.txt; }
}
awk 'BEGIN { print "y,a,b,c,x,z"; for (i = 0; i < 50; i++) {
    x = i * i % 17; k = i % 3; printf "%d,%d,%d,%d,%d,%d\n", i * i % 23, k == 0, k == 1, k == 2, x, 2 * x - 3 * (k == 0) + 1 } }' >table
check 'collinear columns' names_columns 2 'column c is a linear combination of a, b and the intercept:'
check 'the second of them' names_columns 2 'column z is a linear combination of a, x and the intercept:'
check 'without an intercept' names_columns 1 'column z is a linear combination of a, b, c and 1 more:' --set model.intercept=false
# A response without noise: the density is unbounded as sigma goes to 0.
exact_response() { # TIMES OPTION...
    limited mpirun -n 2 --oversubscribe "$emass" check linear.yaml "${@:2}" >/dev/null 2>err.txt || return 1
    cat err.txt
    [ "$(grep -c 'the response is a linear combination of a and the intercept, to six digits' err.txt)" = "$1" ]
}
for seed in 1 2 3; do
    awk -v seed=$seed 'BEGIN { srand(seed); print "a,b,y"; for (i = 0; i < 50; i++) {
        a = 1e6 * rand(); printf "%.9g,%.9g,%.17g\n", a, rand(), 3 + 2 * a } }' >table
    check "a response without noise $seed" exact_response 1 --set model.response=y
    check "whose sigma is given $seed" exact_response 0 --set model.response=y --set model.sigma=1
    check "with an offset $seed" exact_response 0 --set 'model.formula=y ~ a' --set model.offset=b
    awk -v seed=$seed 'BEGIN { srand(seed); print "a,b,y"; for (i = 0; i < 50; i++) {
        a = 1e6 * rand(); printf "%.9g,%.9g,%.17g\n", a, rand(), 3 + 2 * a + 10 * rand() } }' >table
    check "a response with little noise $seed" exact_response 0 --set model.response=y
done
awk 'BEGIN { print "y,year,square"; for (i = 0; i < 50; i++) print i % 7 "," 1970 + i "," (1970 + i) ^ 2 }' >table
check 'years and their squares are not collinear' names_columns 0 ''
printf 'y,x\n1,2\n' >table
one_row() {
    limited "$emass" check linear.yaml >/dev/null 2>err.txt && [ "$(cat err.txt)" = 'emass: warning: table: found 1 row: the posterior is almost the prior' ]
}
check 'one row' one_row

# A first line that is taken for a row is said once, unless the config says so.
printf '1.5,5\n2,7\n3,5\n' >table
says_row() { # TIMES OPTION...
    local times=$1
    limited mpirun -n 2 --oversubscribe "$emass" check linear.yaml "${@:2}" >/dev/null 2>err.txt || return 1
    cat err.txt
    [ "$(grep -c 'table: the first line is read as a row' err.txt)" = "$times" ]
}
check 'a first line that is read as a row' says_row 1
check 'and one that is declared' says_row 0 --set model.header=no
# Ranges between en dashes are categories, not numbers with a minus.
printf 'y,g\n1,5\xe2\x80\x9310\n2,5\xe2\x80\x9310\n4,11\xe2\x80\x9315\n5,11\xe2\x80\x9315\n' >table
check 'ranges as categories' limited "$emass" check linear.yaml --set 'model.formula=y ~ g'
printf 'a,y\n1,5\n2,7\n3,5\n4,4\n' | gzip >table
check 'a table in gzip' limited "$emass" check linear.yaml
finish
