# Writes diag_golden.h, the numbers of the R package posterior that test_diag.c compares with:
#   Rscript tests/unit/diagnostics/diag_golden.R > tests/unit/diagnostics/diag_golden.h
# The draws are made from exact operations on doubles, here and in test_diag.c alike.
suppressPackageStartupMessages(library(posterior))

uniforms <- function(n, seed) {
  state <- seed
  sapply(seq_len(n), function(i) {
    state <<- (16807 * state) %% 2147483647
    state / 2147483647
  })
}

autoregressive <- function(u, n_draw, a) {
  x <- u - 0.5
  for (i in seq_along(x)) if (i %% n_draw != 1) x[i] <- a * x[i - 1] + x[i]
  x
}

# [n_draw, n_chain]; index: the chain from 0, and the draw from 0.
make_draws <- function(kind, n_chain, n_draw, seed) {
  n <- n_chain * n_draw
  u <- uniforms(n, seed)
  v <- uniforms(n, seed + 1)
  chain <- (seq_len(n) - 1) %/% n_draw
  draw <- (seq_len(n) - 1) %% n_draw
  set_third <- function(x, value) ifelse(seq_len(n) == 3, value, x)
  x <- switch(kind,
    iid = u,
    large = 1e6 + u,
    slow = autoregressive(u, n_draw, 0.95),
    antithetic = autoregressive(u, n_draw, -0.75),
    alternating = draw %% 2 + 0 * u,
    heavy = (u - 0.5) / v,
    shifted = u + 0.25 * chain,
    widening = (u - 0.5) * (1 + chain),
    trend = u + draw / n_draw,
    stuck = ifelse(chain == 0, 0.3, u),
    constant = rep(0.1, n),
    ties = floor(5 * u),
    binary = floor(2 * u),
    rare = floor(1.04 * u),
    nan = set_third(u, NaN),
    infinite = set_third(u, Inf),
    minus_infinite = set_third(u, -Inf),
    mostly_infinite = ifelse(u < 0.75, Inf, u))
  matrix(x, n_draw, n_chain)
}

number <- function(x) {
  if (is.na(x)) "NAN" else if (is.infinite(x)) c("-INFINITY", "INFINITY")[1 + (x > 0)]
  else sprintf("%.17g", x)
}

row <- function(kind, n_chain, n_draw, seed) {
  x <- make_draws(kind, n_chain, n_draw, seed)
  value <- suppressWarnings(c(mean(x), sd(x), mcse_mean(x), ess_bulk(x), ess_tail(x), rhat(x),
                              if (anyNA(x)) rep(NA, 3) else quantile(x, c(0.05, 0.5, 0.95))))
  cat(sprintf("{\"%s\", %d, %d, %d, {%s}, {%s}},\n", kind, n_chain, n_draw, seed,
              paste(sapply(value[1:6], number), collapse = ", "),
              paste(sapply(value[7:9], number), collapse = ", ")))
}

cat("/* Made by diag_golden.R with posterior", format(packageVersion("posterior")), "and R",
    paste0(R.version$major, ".", R.version$minor), "*/\n/* clang-format off */\n")
for (kind in c("iid", "slow", "antithetic", "alternating", "heavy", "shifted", "trend", "stuck",
               "widening", "ties", "large"))
  for (size in list(c(1, 40), c(2, 101), c(4, 250), c(3, 258)))
    row(kind, size[1], size[2], 10 * size[1] + nchar(kind))
for (kind in c("constant", "binary", "rare", "nan", "infinite", "minus_infinite",
               "mostly_infinite"))
  for (size in list(c(1, 40), c(3, 101))) row(kind, size[1], size[2], 7)
# From 4 draws on: below, posterior 1.4.0 takes the chains for draws (x[1, ] drops a dimension).
for (n_draw in 4:16) for (kind in c("iid", "stuck", "alternating")) row(kind, 2, n_draw, 5 + n_draw)
row("slow", 8, 1000, 3)
# Seeds for which Geyer's sequence gets to its end with rho_even < 0 < rho_even + rho_odd.
row("iid", 2, 14, 21)
row("shifted", 2, 13, 42)
