#!/usr/bin/env bash
# Neal's funnel in 2, 10 and 100 dimensions and centred hierarchies of 8 and 50, whose log scale has a known law, with 10
# seeds each: its mean and standard deviation, and that no run is said to have converged that is wrong.
exec python3 tests/slow/funnels.py "$1"
