#!/usr/bin/env bash
# Simulation-based calibration with 1000 replications, of every model and, where there is a stanli, of
# four Stan programs (tests/stat/test_sbc.c).
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/../run/lib.sh"
find_stanli || unset EMASS_STANLI
[ -n "${EMASS_STANLI:-}" ] || skip 'calibration of Stan programs' 'no libstanli.so (make analysis/venv/ready)'
calibrate() {
    EMASS_SBC=1000 limited "$build/tests/stat/test_sbc"
}
check 'ranks are uniform in 1000 replications' calibrate
finish
