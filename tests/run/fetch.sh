#!/bin/bash
# jobs/fetch-data from a mirror in a folder: what arrives, and what must not.
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

if ! command -v curl >/dev/null; then
    skip "fetch-data" "curl is not installed (wget reads no file://)"
    finish
fi
if [ -z "${EMASS_DATA:-}" ]; then
    skip "fetch-data" "EMASS_DATA is not set"
    finish
fi
mkdir -p "$scratch/jobs" "$scratch/mirror"
cp jobs/fetch-data "$scratch/jobs/"
cp "$EMASS_DATA/heart/heart.dat" "$EMASS_DATA/australian/australian.dat" "$scratch/mirror/"
for name in a9a a9a.t; do
    gzip -dc "$EMASS_DATA/a9a/$name.gz" >"$scratch/mirror/$name"
done
data=$scratch/jobs/data

fetch() {
    EMASS_MIRROR=file://$scratch/mirror "$scratch/jobs/fetch-data"
}

all_there() {
    cmp "$data/heart/heart.dat" "$scratch/mirror/heart.dat" &&
        cmp "$data/australian/australian.dat" "$scratch/mirror/australian.dat" &&
        gzip -dc "$data/a9a/a9a.gz" | cmp - "$scratch/mirror/a9a" &&
        gzip -dc "$data/a9a/a9a.t.gz" | cmp - "$scratch/mirror/a9a.t"
}

refuses() {
    ! fetch && [ ! -e "$data/heart/heart.dat" ] && [ ! -e "$data/heart/heart.dat.part" ]
}

check "fetches four files" fetch
check "in the layout of EMASS_DATA" all_there
rm "$scratch/mirror/"*
check "fetches nothing twice" fetch
rm "$data/heart/heart.dat"
tr 7 8 <"$EMASS_DATA/heart/heart.dat" >"$scratch/mirror/heart.dat"
check "refuses other bytes and leaves none behind" refuses
finish
