#!/usr/bin/env bash
# run/memory.sh with 10 million rows, 880 MB as doubles.
EMASS_TABLE_COPIES=${EMASS_TABLE_COPIES:-200} exec "$(dirname "$0")/../run/memory.sh" "$@"
