#!/usr/bin/env bash
# A simulator on 2 ranks, as a process and as a UM-Bridge server, that is killed 100 times in all; and the time that
# 8 ranks spend in evaluations whose times are spread 100-fold.
exec python3 tests/slow/simulator_kills.py "$1"
