#!/bin/bash
# The rules of the code (timeout: 600, for two compilers build everything).
exec tests/lint "$1"
