#!/usr/bin/env bash
# The fuzzing of tests/run for FUZZ_SECONDS (300) a program.
FUZZ_SECONDS=${FUZZ_SECONDS:-300} exec bash tests/run/fuzz.sh "$1"
