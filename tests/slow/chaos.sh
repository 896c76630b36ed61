#!/usr/bin/env bash
# The chaos of tests/run with EMASS_CHAOS (50) runs.
EMASS_CHAOS=${EMASS_CHAOS:-50} exec bash tests/run/chaos.sh "$1"
