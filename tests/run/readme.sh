#!/usr/bin/env bash
# What the README promises: its model builds without a warning, is listed, has the right gradient, and
# samples; the config of its table runs, with the commands that it names; those and their options, and
# make's goals, are there.
# shellcheck source=tests/run/lib.sh disable=SC2317,SC2016
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
mkdir built && cp -p "$build"/{emass,libemass.a,libemass.so.*} built # installed as they are, nothing is compiled
make -s -o all -C "$project" B="$scratch/built" PREFIX="$scratch/installed" install || exit 1
export PKG_CONFIG_PATH=$scratch/installed/lib/pkgconfig
sed -n '/^```c$/,/^```$/p' "$project/README.md" | sed '1d;$d' >lighthouse.c
flashes='red: [4.73, 0.45, -1.73, 1.09, 2.19, 0.12, 1.31, 1.00, 1.32, 1.07], white: [8.1, 9.0, 6.5, 7.7, 8.4]'
cat >lighthouse.yaml <<YAML
model: {name: lighthouse, library: ./lighthouse.so, $flashes}
run: {chains: 4}
YAML

builds() {
    # shellcheck disable=SC2046 # words
    cc -std=c17 -Wall -Wextra -Werror -shared -fPIC $(pkg-config --cflags emass) lighthouse.c -o lighthouse.so &&
        [ "$(wc -l <lighthouse.c)" -le 26 ]
}

check 'the model of the README builds without a warning' builds
check 'it is listed with its options' grep -q red <("$emass" list models ./lighthouse.so)
check 'its gradient is right' "$emass" check lighthouse.yaml
check 'it samples' "$emass" run lighthouse.yaml --output out.h5

# ---- its table, its commands ----

# The first config of the README, shorter.
sed -n '/^## Your own table/,/^```$/p' "$project/README.md" | sed -n '/^```yaml$/,/^```$/p' | sed '1d;$d' >heart.yaml

commands() {
    "$emass" check heart.yaml && limited "$emass" run --ranks 2 heart.yaml --set run.draws=200 --quiet &&
        "$emass" summary heart.h5 --ess && "$emass" report heart.h5 && "$emass" list models logistic &&
        limited "$emass" verify heart.h5 --ranks 3 && "$emass" predict heart.h5 --data "$EMASS_DATA/heart/heart.dat" --output new.h5 &&
        limited "$emass" run --ranks 2 heart.yaml --set run.draws=200 --set run.seed=2 --output two.h5 --quiet &&
        "$emass" merge all.h5 heart.h5 two.h5 && "$emass" summary heart.h5 two.h5
}

# The README, the guide, the pages that they lead to, and those of the rooms.
guide=("$project"/README.md "$project"/analysis/guide/*.md)
pages=("${guide[@]}" "$project"/{jobs,tests,tests/bench}/README.md "$project"/src/*/*.md)

# Every `emass COMMAND`, with its options, has them in its help.
known() {
    local command line
    while read -r line; do
        command=$(awk '{ print $2 }' <<<"$line")
        [ -e "help.$command" ] || "$emass" "$command" --help >"help.$command" || { echo "$line" && return 1; }
        grep -oE -- ' --[a-z-]+' <<<"$line" | while read -r option; do
            grep -q -- " $option" "help.$command" || { echo "$command $option" && return 1; }
        done || return 1
    done < <(grep -ohE '(^|`)emass ('"$(emass_commands | paste -sd '|')"')[^`#]*' "${pages[@]}" |
        tr -d '`' | sed 's/  .*//')
}

goals() { # make GOAL
    grep -ohE '(^|`)make [a-z][a-z-]*' "${pages[@]}" | awk '{ print $2 }' | sort -u | while read -r goal; do
        grep -qE "^([a-z-]+ )*$goal( [a-z-]+)*:" "$project/Makefile" || { echo "$goal" && return 1; }
    done
}

links() { # to files, and to titles of pages
    local page link file title
    for page in "${pages[@]}"; do
        grep -oE '\]\([^)]*\)' "$page" | sed 's/^](//; s/)$//' | grep -v '^https:' | while read -r link; do
            file=${link%%#*} title=${link#"${link%%#*}"}
            file=${file:+$(dirname "$page")/$file}
            [ -e "${file:=$page}" ] || { echo "$page: $link" && return 1; }
            [ -z "$title" ] || sed -n 's/^##* //p' "$file" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n-' | grep -qx -- "${title#'#'}" ||
                { echo "$page: $link" && return 1; }
        done || return 1
    done
}

short() { # the README and its lines, and those of the guide
    [ "$(wc -l <"$project/README.md")" -le 250 ] && ! awk 'length > 120 { print FILENAME ":" FNR }' "${guide[@]}" | grep .
}

functions() { # the tables of a page name functions that are in the files beside them
    local page=$project/analysis/guide/contributing.md row name files
    grep -E '^\|.*\]\[\]' "$page" | while read -r row; do
        files=$(grep -oE '\[[a-z_.]+\]\[\]' <<<"$row" | tr -d '[]' |
            while read -r name; do sed -n "s|^.$name.: |$(dirname "$page")/|p" "$page"; done)
        for name in $(grep -oE '`[a-z_]+`' <<<"$row" | tr -d '`'); do
            # shellcheck disable=SC2086
            grep -qw "$name" $files || { echo "$name is not in" $files && return 1; }
        done
    done
}

named() { # `NAME` of [FILE](PATH), or `NAME` ([FILE](PATH)): the file has that name
    local page folder name file
    for page in "${pages[@]}"; do
        folder=$(dirname "$page")
        tr '\n' ' ' <"$page" | grep -oE '`[a-z0-9_]+` +(of |in |\()\[[^]]*\]\([^)#]*\.[ch]\)' |
            sed -E 's/^`([^`]*)`.*\((.*)\)$/\1 \2/' | while read -r name file; do
            grep -qw -- "$name" "$folder/$file" || { echo "$folder: $name is not in $file" && return 1; }
        done || return 1
    done
}

in_the_menu() { # every page of the guide is in that of the site, and in the list of the README
    local page list
    list=$(sed -n '/^## The guide/,$p' "$project/README.md")
    for page in "$project"/analysis/guide/*.md; do
        page=${page#"$project/"}
        { grep -q ": $page\$" "$project/analysis/guide/mkdocs.yml" && grep -qF "($page)" <<<"$list"; } ||
            { echo "$page" && return 1; }
    done
}

if [ -d "${EMASS_DATA:-/nowhere}/heart" ]; then
    check 'its table runs, with its commands' commands
else
    skip 'its table runs' 'no EMASS_DATA'
fi
check 'its commands have their options' known
check 'its goals are there' goals
check 'its links lead somewhere' links
check 'functions are where the guide says' functions
check 'names of the code are in the files that pages give for them' named
check 'it is short, and so are its lines' short
check 'it lists every page of the guide' in_the_menu
check 'the pages of the site are found' "$project/analysis/guide/collect.py" "$scratch/pages"
finish
