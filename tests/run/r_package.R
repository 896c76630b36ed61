# Checks of the package of R, one for each function; r_package.sh runs them.   Rscript r_package.R CHECK ARGUMENT...
suppressMessages(library(emass))
options(mc.cores = 1) # one rank, if none are named: starts of several take long on a busy machine

code <- "data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 2); sigma ~ exponential(1); y ~ normal(mu, sigma); }
generated quantities { vector[N] log_lik; matrix[2, 3] M;
  for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | mu, sigma);
  for (i in 1:2) for (j in 1:3) M[i, j] = 10 * i + j; }"
data <- list(N = 3, y = c(1.5, 2, 1 / 3))

draw <- function(...) emass_sample(code, data, chains = 2, draws = 200, warmup = 100, quiet = TRUE, ...)
same_draws <- function(a, b) identical(unclass(a$draws()), unclass(b$draws()))
error_of <- function(expr) tryCatch({ expr; NULL }, error = identity)
fails <- function(pattern, expr) {
  error <- error_of(expr)
  found <- conditionMessage(error)
  cat("said:", found, "\n")
  stopifnot(grepl(pattern, found), !grepl("\n", found), inherits(error, "emass_error"), error$status == 2)
}

checks <- list()

# ---------------------------------------------------------------- without the program

# A run that found no end by itself has dropped draws: the file says how many iterations a draw stands for.
thinning <- function() {
  said <- list(config = "run:\n  thin: 1\n  seed: 1\n", tuning_steps = 100, sampler = "hmc", seed = 1)
  of <- function(said) emass:::stan_arguments(list(metadata = function() said), 50)[c("thin", "iter", "warmup")]
  stopifnot(identical(of(said), list(thin = 1, iter = 150, warmup = 100)),
            identical(of(c(said, thinning = 8L)), list(thin = 8, iter = 500, warmup = 100)))
}

numbers <- function() {
  set.seed(1)
  x <- c(0, -1, 1e5, 2^31 - 1, 1e22, pi, 1 / 3, 0.1, .Machine$double.xmin, rnorm(1000) * 10^runif(1000, -300, 300))
  json <- function(...) paste(emass:::data_json(list(...)), collapse = "")
  back <- jsonlite::fromJSON(json(x = x))$x
  # as.numeric reads all digits; the reader of jsonlite may round the last one
  texts <- strsplit(gsub(".*\\[|\\].*", "", json(x = x)), ",")[[1]]
  stopifnot(identical(as.numeric(texts), x), isTRUE(all.equal(back, x)))
  cube <- array(1:24, 2:4)
  stopifnot(
    identical(json(a = 1, b = array(2, 1), c = TRUE, d = factor(c("u", "v"))), '{"a": 1,"b": [2],"c": 1,"d": [1,2]}'),
    identical(json(m = matrix(1:6, 2)), '{"m": [[1,3,5],[2,4,6]]}'),
    identical(json(e = numeric(), r = matrix(0, 3, 0), c = matrix(0, 0, 3)), '{"e": [],"r": [[],[],[]],"c": []}'),
    identical(json(i = c(Inf, -Inf)), '{"i": ["Inf","-Inf"]}'),
    identical(json(l = list(1:2, 3:4), t = list(a = 1, b = 2)), '{"l": [[1,2],[3,4]],"t": {"a":1,"b":2}}'),
    identical(jsonlite::fromJSON(json(c = cube))$c, cube))
  fails("data: y: found missing values", json(y = c(1, NA)))
  fails("data: y: found character, expected numbers", json(y = "a"))
  fails("^data: found a value without a name, expected a list", emass:::data_json(list(1)))
  fails("^data: found a value without a name", emass:::data_json(list(a = 1, 2)))
  fails("^data: found function, expected a list with a name for each variable, or a path$", emass:::data_json(mean))
}

arrays <- function() {
  same <- function(from, to) stopifnot(identical(emass:::modern_stan(from), to))
  same("  int Y[N];  // data\n", "  array[N] int Y;  // data\n")
  same("int<lower=1> J_1[N];", "array[N] int<lower=1> J_1;")
  same("vector<lower=0,upper=1>[K + 1] a[M, 2];", "array[M, 2] vector<lower=0,upper=1>[K + 1] a;")
  same("matrix[N, knots_1[1]] Zs[nb[2]];", "array[nb[2]] matrix[N, knots_1[1]] Zs;")
  same("int seq[N] = sequence(1, N);", "array[N] int seq = sequence(1, N);")
  same("real f(real[] x, data int[,] n, vector[] v)", "real f(array[] real x, data array[,] int n, array[] vector v)")
  same("vector[] g(int n) {", "array[] vector g(int n) {")
  new <- "array[N] int Y; vector[M] b; mu[n] = r_1[J_1[n]] * x[n]; real lprior = 0; array[] int f(array[] real x)"
  same(new, new)
  same("fabs(x) + cov_exp_quad(a, b, c)", "abs(x) + gp_exp_quad_cov(a, b, c)")
}

no_program <- function() {
  Sys.setenv(EMASS = "/no/such/emass")
  fails("^/no/such/emass: found no such program", emass_program())
  fails("found no such program", emass_sample(code, data))
  options(emass.program = "sh")
  stopifnot(basename(emass_program()) == "sh")
}

# LD_LIBRARY_PATH of the program is that of the user, as it was before R added folders.
checks$libraries <- function(of_user) {
  before <- emass:::path_before_r
  stopifnot(before("a:b:/c:/d", "a:b") == "/c:/d", before("a:b:a:b:/c", "a:b") == "/c", before("a:b", "a:b") == "",
            before("/c:a:b", "a:b") == "/c:a:b", before("a:bc", "a:b") == "a:bc", before("", "a:b") == "", before("/c", "") == "/c")
  writeLines(c("#!/bin/sh", "echo \"emass: path <$LD_LIBRARY_PATH>\" >&2", "exit 2"), "tell")
  Sys.chmod("tell")
  options(emass.program = "./tell")
  cat("R:", Sys.getenv("LD_LIBRARY_PATH"), "\n")
  stopifnot(nchar(Sys.getenv("LD_LIBRARY_PATH")) > nchar(of_user))
  fails(paste0("^path <", of_user, ">$"), emass_sample(code, data))
}

checks$without_program <- function() {
  thinning()
  numbers()
  arrays()
  no_program()
}

# ---------------------------------------------------------------- Stan programs

checks$sample <- function() {
  fit <- draw(ranks = 1, output = "one.h5")
  said <- NULL
  again <- withCallingHandlers(draw(ranks = 2), message = function(m) said <<- conditionMessage(m))
  stopifnot(identical(said, paste0(fit$verdict(), "\n")))
  stopifnot(inherits(fit, "emass_fit"), same_draws(fit, again), same_draws(fit, emass_read("one.h5")))
  writeLines(code, "own.stan")
  writeLines(emass:::data_json(data), "own.json")
  stopifnot(same_draws(fit, emass_sample("own.stan", "own.json", chains = 2, draws = 200, warmup = 100, quiet = TRUE)))
  draws <- fit$draws()
  names <- c("lp__", "mu", "sigma", "M[1,1]", "M[2,1]", "M[1,2]", "M[2,2]", "M[1,3]", "M[2,3]",
             paste0("log_lik[", 1:3, "]"))
  stopifnot(posterior::is_draws_array(draws), dim(draws) == c(200, 2, 12),
            identical(posterior::variables(draws), names), draws[, , "M[2,1]"] == 21,
            posterior::is_draws_df(fit$draws("mu", "df")),
            identical(posterior::as_draws(fit), draws), fit$summary("mu")$variable == "mu")
  lik <- stats::dnorm(data$y[[3]], draws[, , "mu"], draws[, , "sigma"], log = TRUE)
  stopifnot(max(abs(lik - draws[, , "log_lik[3]"])) < 1e-9)
  told <- fit$diagnostic_summary()
  stopifnot(length(told$num_divergent) == 2, length(told$ebfmi) == 2, told$ebfmi > 0, grepl("R-hat", told$verdict),
            "stepsize__" %in% posterior::variables(fit$sampler_diagnostics()), fit$metadata()$seed == 1)
  if (requireNamespace("loo", quietly = TRUE)) stopifnot(inherits(suppressWarnings(fit$loo()), "psis_loo"))
  stopifnot(any(grepl("R-hat", capture.output(print(fit)))))
  with <- draw(sampler = list(name = "nuts", max_treedepth = 4), init = list(mu = 1, sigma = 1),
               settings = list(output.variables = c("mu", "sigma")))
  stopifnot(with$metadata()$sampler == "nuts", max(with$sampler_diagnostics()[, , "treedepth__"]) <= 4,
            identical(posterior::variables(with$draws()), c("lp__", "mu", "sigma")))
  longer <- emass_resume(fit, draws = 300, quiet = TRUE)
  stopifnot(identical(unclass(longer$draws())[1:200, , ], unclass(draws)[, , ]), dim(longer$draws())[[1]] == 300)
}

checks$errors <- function() {
  fails("^program:1:[0-9]+: Syntax error", emass_sample("parameters { real x }"))
  fails("^data: found y of shape \\(2\\), expected \\(3\\)", emass_sample(code, list(N = 3, y = c(1, 2))))
  fails("no y in it", emass_sample(code, list(N = 3)))
  fails("^config: unknown sampler 'nus'; did you mean nuts", draw(sampler = "nus"))
  fails("^none.stan: found no such file", emass_sample("none.stan"))
  fails("^none.json: found no such file", emass_sample(code, "none.json"))
  fails("^init: found function, expected a list with a name for each variable", draw(init = function() list(mu = 1)))
  fails("^init: found a value without a name", draw(init = list(list(mu = 1), list(mu = 2))))
  fails("^init: mu: found character, expected numbers", draw(init = list(mu = "1")))
  fails("^settings: found list without names, expected a list such as", draw(settings = list(400)))
  fails("^no/such: found no such file, expected the folder of the output", draw(output = "no/such/folder.h5"))
  fails("found list, expected a file, or a fit", emass_resume(list()))
  fails("^none.h5: found no such file, expected a file of draws", emass_resume("none.h5"))
  fails("^none.h5: found no such file, expected a file of draws", emass_read("none.h5"))
  fails("^found numeric, expected a file of draws, by its path$", emass_read(3))
  fails("^none.h5: found no such file, expected a file of draws", read_draws("none.h5"))
  writeLines("a", "notes.txt")
  other <- ncdf4::nc_create("foreign.nc", list(ncdf4::ncvar_def("t", "", list(ncdf4::ncdim_def("x", "", 1:3)))), force_v4 = TRUE)
  ncdf4::nc_close(other)
  fails("foreign.nc: found no group posterior, expected a file of draws$", emass_read("foreign.nc"))
  fails("notes.txt: found no HDF5 in it, expected a file of draws$", emass_read("notes.txt"))
  fit <- emass_sample("parameters { real x; } model { x ~ normal(0, 1); }", draws = 50, quiet = TRUE)
  fails("variables are missing in the draws object: .'nu'", fit$draws("nu"))
  fails("^format: found table, expected array, df, matrix", fit$draws("x", "table"))
  fails("^loo: found no log_lik in the draws, expected a program", fit$loo())
  error <- error_of(emass_sample("parameters { real x; } model { target += log(-1); }", quiet = TRUE))
  stopifnot(inherits(error, "emass_error"), !inherits(error, "emass_stopped"), error$status == 1)
}

checks$refused <- function() {
  fit <- draw(output = "kept.h5")
  before <- tools::md5sum(list.files("kept.h5.inputs", full.names = TRUE))
  fails("kept.h5: found a file, expected none; give overwrite = TRUE", draw(output = "kept.h5"))
  fails("unknown sampler", draw(output = "kept.h5", overwrite = TRUE, sampler = "nus"))
  stopifnot(identical(tools::md5sum(list.files("kept.h5.inputs", full.names = TRUE)), before),
            same_draws(fit, emass_read("kept.h5")))
  fails("unknown sampler", draw(output = "new.h5", sampler = "nus"))
  stopifnot(length(list.files(pattern = "^new")) == 0, length(list.files(pattern = "earlier")) == 0)
  again <- draw(output = "kept.h5", overwrite = TRUE, seed = 2)
  stopifnot(!same_draws(fit, again), length(list.files(pattern = "earlier")) == 0)
}

# ---------------------------------------------------------------- stops

checks$stopped <- function(file) {
  error <- error_of(draw(ranks = 2, output = file))
  print(error)
  stopifnot(inherits(error, "emass_stopped"), error$status == 75,
            grepl("after 130 of 300 iterations, with a checkpoint: go on with emass_resume\\(\"/.*stopped.h5\"\\)$",
                  conditionMessage(error)),
            dim(emass_read(file)$draws())[[1]] == 30)
}

checks$goes_on <- function(file) {
  stopifnot(same_draws(emass_resume(file, ranks = 1, quiet = TRUE), draw()))
}

slow <- "parameters { vector[50] x; }
model { for (i in 1:50) for (j in 1:40) target += normal_lpdf(x[i] | 0, 1 + 0.01 * j); }"
checks$sample_until_interrupt <- function(file) {
  error <- error_of(emass_sample(slow, chains = 2, draws = 2e5, warmup = 50, ranks = 2, output = file,
                                 settings = list(stop.check_every = 20)))
  print(error)
  stopifnot(inherits(error, "emass_stopped"), grepl("stopped by a signal", conditionMessage(error)))
}

checks$resume_to_the_same <- function(file) {
  drawn <- dim(emass_read(file)$draws())[[1]]
  fit <- emass_resume(file, draws = drawn + 10, ranks = 1, quiet = TRUE)
  whole <- emass_sample(slow, chains = 2, draws = drawn + 10, warmup = 50, ranks = 1, quiet = TRUE,
                        settings = list(stop.check_every = 20))
  stopifnot(same_draws(fit, whole))
}

# ---------------------------------------------------------------- brms

if (requireNamespace("brms", quietly = TRUE)) suppressMessages(library(brms))

# `known`: a row of mean and its Monte Carlo standard error for each variable, from 8000 draws by brm(), brms 2.18 and
# rstan 2.21.
agrees <- function(fit, known) {
  draws <- posterior::subset_draws(posterior::as_draws(fit), rownames(known))
  ours <- posterior::summarise_draws(draws, "mean", "mcse_mean")
  stopifnot(identical(as.character(ours$variable), rownames(known)))
  z <- (ours$mean - known[, "mean"]) / sqrt(ours$mcse_mean^2 + known[, "mcse"]^2)
  print(round(z, 1))
  stopifnot(abs(z) < 5)
}

works <- function(fit, resp = NULL) {
  loo <- suppressWarnings(loo::loo(fit))
  effects <- brms::conditional_effects(fit, ndraws = 20)
  check <- brms::pp_check(fit, ndraws = 5)
  stopifnot(brms::is.brmsfit(fit), inherits(loo, "psis_loo"), is.data.frame(effects[[1]]), inherits(check, "ggplot"),
            dim(brms::posterior_predict(fit)) == c(brms::ndraws(fit), stats::nobs(fit)), is.finite(loo$estimates),
            any(grepl("emass", capture.output(print(summary(fit))))))
}

known <- function(...) `colnames<-`(t(data.frame(..., check.names = FALSE)), c("mean", "mcse"))
known_epilepsy <- known(
  b_Intercept = c(1.76942, 0.00325), b_zAge = c(0.09055, 0.00232), b_zBase = c(0.70144, 0.00320),
  b_Trt1 = c(-0.26746, 0.00468), "b_zBase:Trt1" = c(0.05116, 0.00403), sd_patient__Intercept = c(0.58203, 0.00166))
known_orthodont <- known(
  b_Intercept = c(16.74402, 0.00837), b_age = c(0.66019, 0.00087), sd_Subject__Intercept = c(1.49388, 0.02106),
  sd_Subject__age = c(0.17074, 0.00275), cor_Subject__Intercept__age = c(-0.04360, 0.02053),
  sigma = c(1.39780, 0.00218))

checks$brms_poisson <- function() {
  fit <- emass_brm(count ~ zAge + zBase * Trt + (1 | patient), brms::epilepsy, family = poisson(), quiet = TRUE,
                   draws = 1000, output = "epilepsy.h5")
  agrees(fit, known_epilepsy)
  works(fit)
  stopifnot(grepl("R-hat", fit$emass$verdict), length(brms::variables(fit)) == 6 + 59 + 2)
  longer <- emass_resume(emass_read("epilepsy.h5"), draws = 1100, quiet = TRUE)
  stopifnot(brms::ndraws(longer) == 4400,
            identical(posterior::as_draws_array(longer)[1:1000, , ], posterior::as_draws_array(fit)[, , ]))
}

checks$brms_gaussian <- function() {
  data(Orthodont, package = "nlme")
  fit <- emass_brm(distance ~ age + (1 + age | Subject), as.data.frame(Orthodont), quiet = TRUE)
  agrees(fit, known_orthodont)
  works(fit)
  stopifnot("cor_Subject__Intercept__age" %in% brms::variables(fit), dim(brms::ranef(fit)$Subject) == c(27, 4, 2))
}

# Short runs: that each family is sampled, comes back, and predicts.
checks$brms_others <- function() {
  set.seed(1)
  n <- 60
  d <- data.frame(x = rnorm(n), o = factor(sample(1:4, n, TRUE), ordered = TRUE), g = factor(rep(1:6, 10)))
  d$y <- 1 + d$x + rnorm(n)
  d$b <- rbinom(n, 1, plogis(d$x))
  d$count <- rnbinom(n, mu = exp(1 + 0.3 * d$x), size = 2)
  d$zero <- ifelse(runif(n) < 0.3, 0, d$count + 1)
  each <- list(list(b ~ x, bernoulli()), list(y ~ s(x), student()), list(count ~ mo(o) + (1 | g), negbinomial()),
               list(bf(zero ~ x, hu ~ o), hurdle_poisson()),
               list(bf(y ~ x, sigma ~ x), gaussian(), sample_prior = "yes", prior = prior(normal(0, 1), class = "b")))
  for (model in each) {
    arguments <- c(list(model[[1]], d, family = model[[2]]), model[-(1:2)],
                   list(chains = 2, draws = 100, warmup = 200, ranks = 1, quiet = TRUE))
    works(suppressWarnings(do.call(emass_brm, arguments)))
  }
}

# update(), and what brms does by it, samples as the fit was sampled where nothing else is said.
checks$brms_update <- function() {
  set.seed(1)
  n <- 40
  d <- data.frame(x = rnorm(n), z = rnorm(n), g = factor(rep(1:4, 10)))
  d$y <- 1 + d$x + rnorm(n)
  fit <- emass_brm(y ~ x + (1 | g), d, chains = 2, draws = 150, warmup = 300, ranks = 1, quiet = TRUE, seed = 5,
                   sampler = list(name = "nuts", target_accept = 0.95), prior = prior(normal(0, 1), class = "b"))
  same <- function(a, b) identical(unclass(posterior::as_draws_array(a)), unclass(posterior::as_draws_array(b)))
  stopifnot(same(fit, update(fit, quiet = TRUE)), same(fit, update(emass_read(fit$emass$file), quiet = TRUE)))
  wider <- update(fit, . ~ . + z, newdata = d, quiet = TRUE, draws = 100, ranks = 2)
  again <- emass_brm(y ~ x + z + (1 | g), d, chains = 2, draws = 100, warmup = 300, ranks = 1, quiet = TRUE, seed = 5,
                     sampler = list(name = "nuts", target_accept = 0.95), prior = prior(normal(0, 1), class = "b"))
  stopifnot(same(wider, again), "b_z" %in% variables(wider), identical(attr(wider$data, "data_name"), "d"))
  fewer <- update(fit, newdata = d[1:20, ], prior = prior(normal(0, 9), class = "b"), quiet = TRUE)
  stopifnot(nobs(fewer) == 20, "normal(0, 9)" %in% prior_summary(fewer)$prior, ndraws(fewer) == 300)
  folds <- suppressMessages(kfold(fit, K = 2, save_fits = TRUE))
  stopifnot(inherits(folds, "kfold"), is.finite(folds$estimates), nobs(folds$fits[1, ]$fit) == 20)
  by_loo <- suppressWarnings(suppressMessages(reloo(fit, loo(fit), k_threshold = sort(loo(fit)$diagnostics$pareto_k)[n - 1])))
  stopifnot(inherits(by_loo, "psis_loo"))
  fails("^iter: emass_brm\\(\\) has no such argument, expected draws and warmup", update(fit, iter = 200))
  fails("New variables found: 'w'", update(fit, . ~ . + w))
}

checks$brms_errors <- function() {
  model <- function(...) emass_brm(y ~ x, data.frame(x = 1:5, y = c(1, 3, 2, 5, 4)), ...)
  fails("^iter: emass_brm\\(\\) has no such argument, expected draws and warmup", model(iter = 2000))
  fails("^cores: .* expected ranks", model(cores = 4))
  fails("^control: .* expected sampler", model(control = list(adapt_delta = 0.9)))
  fails("^chians: emass_brm\\(\\) has no such argument$", model(chians = 2))
  fails("neither be found in 'data' nor in 'data2': 'z'", emass_brm(y ~ z, data.frame(y = 1:3)))
  fails("^threads: emass_brm\\(\\) has no such argument$", model(threads = 2))
}

wanted <- commandArgs(TRUE)
do.call(checks[[wanted[[1]]]], as.list(wanted[-1]))
