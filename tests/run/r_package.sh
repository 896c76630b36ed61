#!/usr/bin/env bash
# The package of R, analysis/r: Stan programs, errors, interrupts, and models of brms. r_package.R has
# the checks; it is run for each, and prints nothing that counts.   tests/run/r_package.sh BUILD
# shellcheck source=tests/run/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
project=$(cd "$(dirname "$0")/../.." && pwd)
checks=$project/tests/run/r_package.R
find_stanli || EMASS_STANLI=''
cd "$scratch" || exit

r_has() { # PACKAGE...
    local package
    for package; do
        [ "$(Rscript -e "cat(nzchar(system.file(package = '$package')))" 2>/dev/null)" = TRUE ] || return 1
    done
}
if ! have Rscript || ! r_has ncdf4 posterior processx jsonlite; then
    skip 'the package of R' 'no R with ncdf4, posterior, processx and jsonlite'
    finish
fi

# From a copy, as R leaves files there. Its folders do not depend on what the user has.
mkdir library && cp -r "$project/analysis/r" source
export R_LIBS=$scratch/library R_ENVIRON_USER='' R_PROFILE_USER='' EMASS=$emass LC_ALL=C.UTF-8
installs() { limited R CMD INSTALL --library=library source; }
by_r() { limited Rscript --vanilla "$checks" "$@"; } # CHECK ARGUMENT...

# All exported functions have a page, and pages say the arguments that there are.
documented() { limited Rscript --vanilla -e 'found <- c(tools::codoc("emass", lib.loc = "library"),
    tools::undoc("emass", lib.loc = "library")); print(found); quit(status = sum(lengths(found)) > 0)'; }
pages_are_new() {
    cp -r "$project/analysis/r" again &&
        limited Rscript --vanilla -e 'roxygen2::roxygenise("again", load_code = "source")' &&
        diff -r again/man "$project/analysis/r/man" && diff again/NAMESPACE "$project/analysis/r/NAMESPACE"
}

has_roxygen() { # of the version that made the pages
    Rscript --vanilla -e 'made <- read.dcf("source/DESCRIPTION", "RoxygenNote")[[1]]
        quit(status = tryCatch(packageVersion("roxygen2") != made, error = function(e) 1L))'
}

check 'it installs' installs
check 'its functions are documented' documented
if has_roxygen; then
    check 'by pages that roxygen2 makes of its code' pages_are_new
else
    skip 'pages that roxygen2 makes' 'no roxygen2 of the version in DESCRIPTION'
fi
check 'data arrive as the same numbers, old arrays as new ones, and no program is told' by_r without_program
LD_LIBRARY_PATH=/opt/module/lib:/opt/other/lib check 'the program gets the LD_LIBRARY_PATH of the user, not of R' \
    by_r libraries /opt/module/lib:/opt/other/lib
LD_LIBRARY_PATH='' check 'none where the user has none' by_r libraries ''

if [ -z "$EMASS_STANLI" ]; then
    skip 'Stan programs in R' 'no libstanli.so: pip install stanli, or make analysis/venv/ready'
    finish
fi

# Starts R in the background, whose run writes FILE, and returns when it draws.
sampling_in() { # FILE
    Rscript --vanilla "$checks" sample_until_interrupt "$1" >words 2>&1 &
    waiting=$!
    for _ in $(seq $((10 * EMASS_LIMIT))); do
        if grep -q '^sampling' words || ! kill -0 "$waiting" 2>/dev/null; then break; fi
        sleep 0.1
    done
}

# Interrupts R, as Ctrl-C does; the run that is left goes on to the same draws.
interrupted() {
    sampling_in interrupted.h5
    kill -INT "$waiting"
    wait "$waiting" || { cat words && return 1; }
    cat words
    by_r resume_to_the_same interrupted.h5
}

# A signal that R does not handle: R ends, and then the ranks do, with a checkpoint.
killed() { # SIGNAL
    local file=$scratch/killed$1.h5
    sampling_in "$file"
    kill -"$1" "$waiting"
    wait "$waiting"
    echo "status $?"
    for _ in $(seq $((10 * EMASS_LIMIT))); do
        pgrep -f -- "--output $file" || break
        sleep 0.1
    done >pids
    ! pgrep -f -- "--output $file" && [ -s "$file.checkpoint" ] && by_r resume_to_the_same "$file"
}

check 'a Stan program is sampled, the same on 1 and 2 ranks' by_r sample
check 'errors are those of the program, in one line' by_r errors
check 'what is refused leaves an earlier run as it was' by_r refused
EMASS_FAULT=time-limit:0:130 check 'a run that was stopped is an error that says how to go on' by_r stopped stopped.h5
check 'and goes on to the same draws' by_r goes_on stopped.h5
check 'an interrupt leaves a checkpoint' interrupted
check 'so does SIGTERM, which ends R' killed TERM
check 'and SIGKILL' killed KILL

if ! r_has brms rstan; then
    skip 'models of brms' 'no R with brms and rstan'
    finish
fi
check 'brms: a Poisson model with group effects, as by rstan' by_r brms_poisson
check 'brms: a Gaussian one with correlated effects, as by rstan' by_r brms_gaussian
check 'brms: families, smooths and monotonic effects' by_r brms_others
check 'brms: update, and the fits of kfold and reloo' by_r brms_update
check 'brms: arguments that have no place are told' by_r brms_errors
finish
