#!/usr/bin/env bash
# R's posterior on a file of ours, by analysis/read_draws.R: names, shapes, and numbers equal to those
# of emass summary to 1e-8; bayesplot, where it is, draws it.   tests/run/r_reader.sh BUILD
# shellcheck source=tests/run/lib.sh
. tests/run/lib.sh
reader=$PWD/analysis/read_draws.R
cd "$scratch" || exit

r_has() { [ "$(Rscript -e "cat(nzchar(system.file(package = '$1')))" 2>/dev/null)" = TRUE ]; }
if ! have Rscript || ! r_has posterior || ! r_has ncdf4; then
    skip 'R, posterior' 'no R with ncdf4 and posterior'
    finish
fi

printf 'x,"a,b",y\n%s\n' "$(seq 60 | awk '{ print $1 % 7, $1 % 5, $1 % 3 }' OFS=,)" >t.csv
printf 'model: {name: linear, data: t.csv, sigma: unknown}\nrun: {chains: 3, draws: 120}\n' >linear.yaml
printf 'model: {name: eight_schools}\nrun: {chains: 2, draws: 100}\n' >schools.yaml
cat >compare.R <<'R'
source(commandArgs(TRUE)[1])
path <- commandArgs(TRUE)[2]
draws <- read_draws(path)
theirs <- posterior::summarise_draws(draws, "mean", "sd", posterior::default_convergence_measures())
ours <- read.csv(commandArgs(TRUE)[3], check.names = FALSE)
same <- function(a, b) isTRUE(all.equal(as.numeric(a), as.numeric(b), tolerance = 1e-8))
stopifnot(identical(as.character(theirs$variable), ours$name),
          same(theirs$mean, ours$mean), same(theirs$sd, ours$sd), same(theirs$rhat, ours$r_hat),
          same(theirs$ess_bulk, ours$ess_bulk), same(theirs$ess_tail, ours$ess_tail))
stats <- read_draws(path, "sample_stats")
stopifnot("lp" %in% posterior::variables(stats), dim(stats)[1:2] == dim(draws)[1:2])
wrong <- tryCatch(read_draws(path, "none"), error = conditionMessage)
stopifnot(grepl("no draws in group none, but in posterior", wrong))
if (nzchar(system.file(package = "bayesplot"))) stopifnot(inherits(bayesplot::mcmc_trace(draws), "ggplot"))
R

compares() { # NAME
    limited "$emass" run "$1.yaml" --quiet && "$emass" summary "$1.h5" --csv >"$1.csv" &&
        LC_ALL=C.UTF-8 limited Rscript compare.R "$reader" "$1.h5" "$1.csv"
}

check 'labels with blanks and quotes' compares schools
check 'a name with a comma' compares linear
finish
