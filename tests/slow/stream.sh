#!/usr/bin/env bash
# run/stream.sh with a corpus ten times larger than all that a run may have, some GB.
EMASS_STREAM=all exec "$(dirname "$0")/../run/stream.sh" "$@"
