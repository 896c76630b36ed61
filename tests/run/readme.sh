#!/usr/bin/env bash
# What the README promises of models: the one it shows builds without a warning, is listed, has the
# right gradient, and samples.
# shellcheck source=tests/run/lib.sh disable=SC2317,SC2016
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cd "$scratch" || exit 1
mkdir built && cp -p "$build"/{emass,libemass.a,libemass.so.*} built # installed as they are, nothing is compiled
make -s -o all -C "$project" B="$scratch/built" PREFIX="$scratch/installed" install || exit 1
export PKG_CONFIG_PATH=$scratch/installed/lib/pkgconfig
sed -n '/^```c$/,/^```$/p' "$project/README.md" | sed '1d;$d' >lighthouse.c
flashes='flashes: [4.73, 0.45, -1.73, 1.09, 2.19, 0.12, 1.31, 1.00, 1.32, 1.07]'
cat >lighthouse.yaml <<YAML
model: {name: lighthouse, library: ./lighthouse.so, $flashes}
run: {chains: 4}
YAML

builds() {
    # shellcheck disable=SC2046 # words
    cc -std=c17 -Wall -Wextra -Werror -shared -fPIC $(pkg-config --cflags emass) lighthouse.c -o lighthouse.so &&
        [ "$(wc -l <lighthouse.c)" -le 20 ]
}

check 'the model of the README builds without a warning' builds
check 'it is listed with its options' grep -q offshore <("$emass" list models ./lighthouse.so)
check 'its gradient is right' "$emass" check lighthouse.yaml
check 'it samples' "$emass" run lighthouse.yaml --output out.h5
finish
