#!/usr/bin/env bash
# A regression network sampled by SGHMC has the predictive band that a long run of HMC has: ten seconds.
exec python3 "$(dirname "$0")/../run/network.py" "${1:?usage: tests/slow/network.sh BUILD}" hmc
