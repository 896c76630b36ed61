#!/usr/bin/env bash
# The analytic benchmarks of UM-Bridge, served by its own package of Python, beside quadrature; and what a call costs.
exec python3 tests/slow/umbridge_targets.py "$1"
