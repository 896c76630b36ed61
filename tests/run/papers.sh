#!/bin/bash
# make papers, in small: runs are done once, and the page has their numbers and figures.
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

python=analysis/venv/bin/python
if [ ! -e analysis/venv/ready ]; then
    skip "the papers' experiments" "no analysis/venv: make analysis/venv/ready"
    finish
fi

papers() {
    limited "$python" analysis/papers.py "$build" --folder "$scratch/out" --shorten 100 \
        --only '000/normal/reference' --only '000/normal/hmc' --only '000/normal/as-printed/hmc' \
        --only '002/banana/*/0.05' --only '003/density/sghmc' --only '004/well/*/0.1'
}

# A page with the paper's numbers and ours of a sampler that was run, dashes for one that was not,
# and every figure it shows.
page_is_whole() {
    local page=$scratch/out/papers picture
    grep -E '^\| HMC \| 0\.0196 \| 0\.0197( \| -?[0-9.e-]+){10} \| [0-9]+ of [0-9]+ \|$' "$page.md" || return 1
    grep -E '^\| RHMC \| 0\.0111 \| 0\.0089( \| -){11} \|$' "$page.md" || return 1
    for picture in 002_fig2_right 003_fig3 004_fig1; do
        grep -q "]($picture.png)" "$page.md" || return 1
        grep -q "src=\"$picture.png\"" "$page.html" || return 1
        [ -s "$scratch/out/$picture.png" ] || return 1
    done
}

# Every file as it was: finished runs are not run again.
stamps() {
    find "$scratch/out/runs" -name '*.h5' -printf '%p %T@ %i\n' | sort
}

again_changes_nothing() {
    local before
    before=$(stamps)
    papers && [ -n "$before" ] && [ "$before" = "$(stamps)" ]
}

# A run that emass refuses is named, and the exit status is not 0.
failure_is_reported() {
    echo spoilt >"$scratch/out/linear.h5"
    ! limited "$python" analysis/papers.py "$build" --folder "$scratch/out" --shorten 100 \
        --only '003/time/with-data' >"$scratch/failure" 2>&1 &&
        grep 'papers.py: 003/time/with-data: .*linear.h5' "$scratch/failure"
}

# What the measures say of draws whose law is known.
measures_are_right() {
    PYTHONPATH=analysis $python - <<'END'
import numpy as np
from papers_measure import Density, bias, one_peak, rmse, spread
exact = np.random.default_rng(1).normal(size=(4, 50000))
truth = Density(one_peak, -6, 6, 60)
assert abs(truth.mass.sum() - 1) < 1e-12
# Binned KL of N(0, 1.2^2) from N(0, 1): ln(1 / 1.2) + (1.2^2 - 1) / 2, to the bins and the noise.
assert abs(truth.kl(1.2 * exact) - (0.22 - np.log(1.2))) < 0.002
assert truth.kl(exact) < 60 / 2e5 * 2
assert truth.kl(exact + 20) == np.inf
assert abs(spread(2 * exact, exact) - 2) < 1e-12 and abs(bias(exact + 1, exact) - 1) < 0.01
assert abs(rmse(exact + 3, 0) - np.sqrt(10)) < 0.02
END
}

check "measures of known draws" measures_are_right
check "a shortened set of runs, and their page" papers
check "the page has all numbers and figures" page_is_whole
check "again: nothing is run twice" again_changes_nothing
check "a run that fails is named" failure_is_reported
finish
