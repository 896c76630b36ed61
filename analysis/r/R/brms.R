# Models of brms: its Stan code and data go to the program, and the draws come back as a brmsfit.

#' Fit a model of brms
#'
#' Takes the formula, the family, the priors and all else that [brms::brm()] takes to describe a model, samples the Stan
#' program that brms makes of it by [emass_sample()], and returns a `brmsfit`: `summary`, `conditional_effects`, `loo`,
#' `pp_check`, `posterior_predict` and the other functions of brms work on it. No C++ compiler is needed.
#'
#' @param formula,data,family,prior As in [brms::brm()].
#' @param ... More arguments of [brms::brm()] that describe the model, such as `data2`, `knots`, `sample_prior`,
#'   `save_pars` and `stanvars`. Those that control sampling (`iter`, `cores`, `control`, `backend` ...) are errors
#'   that name the argument to use here.
#' @inheritParams emass_sample
#' @return A `brmsfit`. Its element `emass` has the path of the file and the verdict of the run.
#' @examples
#' \dontrun{
#' fit <- emass_brm(count ~ zAge + zBase * Trt + (1 | patient), brms::epilepsy, family = poisson())
#' summary(fit)
#' plot(brms::conditional_effects(fit))
#' }
#' @export
emass_brm <- function(formula, data, family = stats::gaussian(), prior = NULL, ..., chains = 4, draws = NULL,
                      warmup = NULL, thin = NULL, seed = 1, ranks = NULL, sampler = NULL, init = NULL,
                      max_time = NULL, settings = list(), output = NULL, overwrite = FALSE, quiet = FALSE) {
  needs_brms()
  refuse_arguments(names(list(...)))
  empty <- of_others(
    brms::brm(formula, data = data, family = family, prior = prior, ..., backend = "rstan", empty = TRUE))
  attr(empty$data, "data_name") <- paste(deparse(substitute(data)), collapse = "")
  sample_brms(empty, chains = chains, draws = draws, warmup = warmup, thin = thin, seed = seed, ranks = ranks,
              sampler = sampler, init = init, max_time = max_time, settings = settings, output = output,
              overwrite = overwrite, quiet = quiet)
}

# Samples the model of a brmsfit without draws.
sample_brms <- function(empty, init, ...) {
  code <- modern_stan(brms::stancode(empty))
  if (is.character(init) && identical(init, "random")) init <- NULL
  file <- run_stan(code, unclass(brms::standata(empty)), init = init, ...,
                   also = function(folder) saveRDS(empty, file.path(folder, "brmsfit.rds")))
  read_and_tell(file)
}

#' Change a model of brms, and sample it again
#'
#' Does what `update()` does to a fit of [brms::brm()]. The functions of brms that fit a model again, such as
#' [brms::kfold()] and [brms::reloo()], call it.
#'
#' @param object A fit of [emass_brm()].
#' @param formula.,newdata As in `update()` of brms: changes to the formula, and other data.
#' @param ... Other arguments of [brms::brm()] that describe the model and are to change, such as `prior` or `family`.
#' @param chains,draws,warmup,thin,seed,ranks,sampler,max_time,settings As in [emass_sample()]; by default, and without
#'   a number of ranks, as `object` was sampled.
#' @param init,output,overwrite,quiet As in [emass_sample()].
#' @return A `brmsfit`, as from [emass_brm()].
#' @importFrom stats update
#' @export
update.emass_brmsfit <- function(object, formula. = NULL, newdata = NULL, ..., chains = NULL, draws = NULL,
                                 warmup = NULL, thin = NULL, seed = NULL, ranks = NULL, sampler = NULL, init = NULL,
                                 max_time = NULL, settings = list(), output = NULL, overwrite = FALSE, quiet = FALSE) {
  needs_brms()
  also <- list(...)
  if (identical(also$refresh, 0)) quiet <- TRUE # from kfold() and reloo()
  also <- also[setdiff(names(also), c("recompile", "refresh", if ("refresh" %in% names(also)) "silent"))]
  refuse_arguments(names(also))
  change <- function(...) utils::getS3method("update", "brmsfit", envir = asNamespace("brms"))(
    object, formula., newdata = newdata, recompile = TRUE, empty = TRUE, backend = "rstan", silent = 2, ...)
  empty <- of_others(do.call(change, also))
  name <- if (is.null(newdata)) attr(object$data, "data_name") else paste(deparse(substitute(newdata)), collapse = "")
  attr(empty$data, "data_name") <- name
  before <- object$emass$config
  if (is.null(ranks)) ranks <- default_ranks(if (is.null(chains)) before$run$chains else chains)
  sample_brms(empty, before = before, chains = chains, draws = draws, warmup = warmup, thin = thin, seed = seed,
              ranks = ranks, sampler = sampler, init = init, max_time = max_time, settings = settings, output = output,
              overwrite = overwrite, quiet = quiet)
}

needs_brms <- function() {
  for (package in c("brms", "rstan")) {
    if (!requireNamespace(package, quietly = TRUE)) {
      refuse("emass_brm() needs the package ", package, ", which is not installed")
    }
  }
}

# Arguments of brm() that say how to sample, and what takes their place. Those that brm() does not have it would ignore.
refuse_arguments <- function(given) {
  instead <- c(iter = "draws and warmup", cores = "ranks", control = "sampler", inits = "init", file = "output",
               file_refit = "overwrite", fit = "emass_resume()", refresh = "quiet", silent = "quiet")
  without <- c("algorithm", "backend", "empty", "future", "opencl", "rename", "stan_model_args", "threads")
  for (name in intersect(names(instead), given)) {
    refuse(name, ": emass_brm() has no such argument, expected ", instead[[name]])
  }
  unknown <- setdiff(given, c("", names(formals(brms::brm))))
  for (name in c(intersect(without, given), unknown)) refuse(name, ": emass_brm() has no such argument")
}

# brms before 2.19 writes arrays as Stan did before version 2.26: `int y[N];` and, of arguments, `real[] x`. Stan has
# them no more: `array[N] int y;` and `array[] real x`. The same holds of two functions' names.
modern_stan <- function(code) {
  types <- paste0("(?:int|real|complex|(?:row_)?vector|(?:corr_|cov_)?matrix|simplex|(?:positive_)?ordered|",
                  "unit_vector|cholesky_factor_(?:corr|cov))")
  sizes <- "\\[(?:[^\\[\\]]|\\[[^\\[\\]]*\\])*\\]"
  declared <- paste0("(?<![\\w.])(", types, "\\s*(?:<[^<>;]*>)?\\s*(?:", sizes, ")?)\\s+([A-Za-z]\\w*)\\s*(", sizes,
                     ")(?=\\s*[;=])")
  code <- gsub(paste0("(?<![\\w.])(", types, ")\\s*\\[([\\s,]*)\\]"), "array[\\2] \\1", code, perl = TRUE)
  code <- gsub(declared, "array\\3 \\1 \\2", code, perl = TRUE)
  code <- gsub("\\bcov_exp_quad(?=\\s*\\()", "gp_exp_quad_cov", code, perl = TRUE)
  gsub("\\bfabs(?=\\s*\\()", "abs", code, perl = TRUE)
}

# Puts the draws of a fit into the brmsfit that brm(empty = TRUE) made.
fill_brmsfit <- function(empty, fit) {
  needs_brms()
  excluded <- utils::getFromNamespace("exclude_pars", "brms")(empty)
  empty$fit <- as_stanfit(fit, excluded)
  sampled <- jsonlite::read_json(file.path(inputs_of(fit$output_files()), "config.yaml"))
  empty$emass <- list(file = fit$output_files(), verdict = fit$verdict(),
                      config = sampled[setdiff(names(sampled), "model")]) # by which update() samples again
  class(empty) <- union("emass_brmsfit", class(empty))
  brms::rename_pars(empty)
}

# A stanfit of rstan without a compiled model, as brms makes of draws of CmdStan. lp__ comes last.
as_stanfit <- function(fit, excluded = character()) {
  draws <- fit$draws()
  base <- sub("\\[.*", "", posterior::variables(draws))
  order <- c(which(base != "lp__" & !base %in% excluded), which(base == "lp__"))
  draws <- draws[, , order]
  base <- factor(base[order], unique(base[order]))
  size <- dim(draws)[[1]]
  chains <- dim(draws)[[2]]
  each <- seq_len(chains)
  arguments <- stan_arguments(fit, size)
  names <- posterior::variables(draws)
  axes <- lapply(split(names, base), axes_of)
  sim <- list(samples = lapply(each, stan_chain, draws = draws, fit = fit, arguments = arguments),
              iter = arguments$iter, thin = arguments$thin, warmup = arguments$warmup, chains = chains,
              n_save = rep(size, chains), warmup2 = rep(0L, chains),
              permutation = lapply(each, function(i) seq_len(size)),
              pars_oi = levels(base), dims_oi = axes, fnames_oi = names, n_flatnames = length(names))
  create <- function(class, ...) methods::new(methods::getClass(class, where = asNamespace("rstan")), ...)
  object <- create("cxxdso", sig = list(character()), dso_saved = FALSE, dso_filename = character(),
                   modulename = character(), system = R.version$system, cxxflags = character(),
                   .CXXDSOMISC = new.env(parent = emptyenv()))
  model <- create("stanmodel", model_name = "emass", model_code = character(), model_cpp = list(), dso = object)
  create("stanfit", model_name = "emass", model_pars = levels(base), par_dims = axes, mode = 0L, sim = sim,
         inits = list(), stan_args = lapply(each, function(i) c(arguments, chain_id = i)),
         stanmodel = model,
         date = format(file.mtime(fit$output_files()), "%a %b %d %X %Y"), .MISC = new.env(parent = emptyenv()))
}

# The extents of a variable, from the names of its elements: 2 and 3 of L[1,1] ... L[2,3].
axes_of <- function(names) {
  index <- sub(".*\\[(.*)\\]$", "\\1", names[grepl("[", names, fixed = TRUE)])
  last <- utils::tail(index, 1) # the largest of all axes, for the first varies fastest
  if (length(last)) as.integer(strsplit(last, ",", fixed = TRUE)[[1]]) else integer()
}

# How the draws were made, in the words of rstan.
stan_arguments <- function(fit, size) {
  said <- fit$metadata()
  option <- function(key) {
    line <- regmatches(said$config, regexpr(paste0("(?m)^ +", key, ": [-0-9.e]+$"), said$config, perl = TRUE))
    if (length(line)) as.numeric(sub(".*: ", "", line))
  }
  thin <- if (is.null(said$thinning)) option("thin") else as.numeric(said$thinning) # a run may have thinned its draws
  warmup <- as.numeric(said$tuning_steps)
  control <- list(adapt_delta = option("target_accept"), max_treedepth = option("max_treedepth"))
  list(method = "emass", algorithm = said$sampler, sampler_t = said$sampler, iter = warmup + size * thin, thin = thin,
       warmup = warmup, save_warmup = FALSE, seed = as.character(said$seed), control = Filter(Negate(is.null), control))
}

# The draws of one chain, with the attributes that rstan reads.
stan_chain <- function(i, draws, fit, arguments) {
  samples <- as.list(as.data.frame(unclass(draws)[, i, , drop = TRUE], optional = TRUE))
  of_chain <- function(x) as.data.frame(matrix(x[, i, ], dim(x)[[1]], dimnames = list(NULL, posterior::variables(x))))
  attr(samples, "sampler_params") <- of_chain(fit$sampler_diagnostics())
  attr(samples, "args") <- list(sampler_t = arguments$sampler_t, chain_id = i, control = arguments$control)
  attr(samples, "elapsed_time") <- c(warmup = 0, sample = as.numeric(fit$metadata()$sampling_time))
  attr(samples, "mean_pars") <- vapply(utils::head(samples, -1), mean, 0)
  attr(samples, "mean_lp__") <- mean(samples[["lp__"]])
  samples
}
