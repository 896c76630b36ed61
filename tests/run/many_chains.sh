#!/usr/bin/env bash
# Thousands of chains on one rank: setting up takes memory and time in proportion to them.
# shellcheck source=tests/run/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

have ncdump python3 ||
    { skip "thousands of chains" "no ncdump (netcdf-bin), or no python3" && finish; }
cat >many.yaml <<'END'
model: {name: eight_schools}
sampler: {name: hmc}
run: {chains: 4000, warmup: 10, draws: 1000}
stop: {max_time: 0.001}
output: {file: many.h5}
END

# Stops at once, with a checkpoint: kilobytes of memory and milliseconds of processor for a chain.
cost() { # CHAINS
    python3 - "$emass" "$1" <<'END'
import resource, subprocess, sys
done = subprocess.run([sys.argv[1], "run", "many.yaml", "--chains", sys.argv[2], "--overwrite", "--quiet"])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
assert done.returncode == 75, done.returncode
print(used.ru_maxrss // int(sys.argv[2]), int(1000 * (used.ru_utime + used.ru_stime)) // int(sys.argv[2]))
END
}

read -r kilobytes milliseconds < <(cost 4000)
echo "# $kilobytes KB and $milliseconds ms of processor for each of 4000 chains"
# 100 draws of 17 numbers are buffered, 13 KB; before, with a chunk of the file for each 100 draws,
# all of what is watched cleared at once, and transfers of less for more chains, this was 290 KB.
check "memory in proportion to the chains" test "$kilobytes" -lt 120

# One piece of the file for the draws of a chain, not one for each write.
ncdump -hs many.h5 >header
check "one chunk for a chain of usual length" grep -q 'lp:_ChunkSizes = 1, 1000 ;' header
check "in all groups" grep -q 'theta:_ChunkSizes = 1, 1000, 8 ;' header

finish
