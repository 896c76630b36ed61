#!/usr/bin/env bash
# The chaos of tests/run with tempered runs alone, until EMASS_CHAOS_KILLS (100) ranks or runs were killed or signalled.
EMASS_CHAOS=${EMASS_CHAOS:-1} EMASS_CHAOS_KILLS=${EMASS_CHAOS_KILLS:-100} EMASS_CHAOS_ONLY=tempered.yaml exec bash tests/run/chaos.sh "$1"
