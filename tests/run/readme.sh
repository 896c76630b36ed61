#!/usr/bin/env bash
# What the README promises of models: the one it shows builds without a warning, is listed, has the
# right gradient, and samples.
# shellcheck source=tests/run/lib.sh disable=SC2317,SC2016
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
cp -pr "$project"/{Makefile,include,src,README.md} "$scratch" && cd "$scratch" || exit 1
mkdir built && cp -pr "$build"/{obj,libemass.a,flags,sources,version.h} built # the rest is compiled anew

sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >src/model/lighthouse.c
sed -i 's/^extern const em_model_ops /&em_model_lighthouse, /; s/= {&em_model_eight_schools,/= {\&em_model_lighthouse, \&em_model_eight_schools,/' \
    src/model/list.c
cat >lighthouse.yaml <<'YAML'
model: {name: lighthouse, flashes: [4.73, 0.45, -1.73, 1.09, 2.19, 0.12, 1.31, 1.00, 1.32, 1.07]}
sampler: {name: hmc}
run: {chains: 4}
YAML

builds() {
    local said
    said=$(make -j2 B=built CI="$(grep -o -e -Werror built/flags)" all 2>&1) &&
        ! grep warning: <<<"$said" && [ "$(wc -l <src/model/lighthouse.c)" -le 40 ]
}

check 'the model of the README builds without a warning' builds
check 'it is listed with its options' grep -q offshore <(built/emass list models lighthouse)
check 'its gradient is right' built/emass check lighthouse.yaml
check 'it samples' built/emass run lighthouse.yaml --output out.h5
finish
