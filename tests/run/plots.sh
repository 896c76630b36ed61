#!/bin/bash
# analysis/plot.py on a file of ours, on one that others wrote, and on what is no file of draws.
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh

python=analysis/venv/bin/python
if [ ! -e analysis/venv/ready ]; then
    skip "figures" "no analysis/venv: make analysis/venv/ready"
    finish
fi

# A picture of a kind: PNG, of a size, and not of one colour.
is_picture() { # FILE
    $python - "$1" <<'END'
import sys
import matplotlib.image
pixels = matplotlib.image.imread(sys.argv[1])
assert min(pixels.shape[:2]) > 300, pixels.shape
assert 0.02 < (pixels[..., :3] < 0.9).any(axis=2).mean() < 0.9, "blank, or black"
END
}

foreign_file() {
    $python - "$1" <<'END'
import sys
import arviz
import numpy
draws = numpy.random.default_rng(1).normal(size=(3, 200, 2))
arviz.from_dict(posterior={"x": draws, "y": draws[..., 0]}).to_netcdf(sys.argv[1])
END
}

plot() { # FILE [option]...
    $python analysis/plot.py "$@"
}

refuses() { # WHAT-IT-SAYS plot-argument...
    local said what=$1
    shift
    said=$(plot "$@" 2>&1) && return 1
    echo "$said"
    [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == *$what* ]]
}

check "emass writes a file" limited "$emass" run jobs/eight_schools.yaml \
    --set run.warmup=300 --set run.draws=200 --output "$scratch/ours.h5"
check "a figure of it" plot "$scratch/ours.h5"
check "is a picture" is_picture "$scratch/ours.png"
check "ArviZ writes a file" foreign_file "$scratch/theirs.h5"
check "a figure of chosen variables of it" plot "$scratch/theirs.h5" --var 'x*' -o "$scratch/x.png"
check "is a picture" is_picture "$scratch/x.png"
check "an unknown variable is an error" refuses "called nothing" "$scratch/theirs.h5" --var nothing
check "so is a file of something else" refuses "not a file of draws" Makefile
finish
