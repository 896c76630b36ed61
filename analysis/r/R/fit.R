# What a run has written, as an object of R.

#' Read the output of a run
#'
#' @param file The file of the draws. The run may be in progress, or may have been stopped.
#' @return Of a file that [emass_brm()] made, a `brmsfit`. Of another, a fit with these functions:
#' \describe{
#'   \item{`$draws(variables, format)`}{The draws, by default as a `draws_array` of posterior, and all variables.
#'     `format` is `"array"`, `"df"`, `"matrix"`, `"list"` or `"rvars"`.}
#'   \item{`$summary(variables, ...)`}{A table of means, quantiles, R-hat and effective sample sizes, by
#'     [posterior::summarise_draws()], which gets `...`.}
#'   \item{`$sampler_diagnostics()`}{Acceptance rate, step size, tree depth and so on of each draw, with Stan's names.}
#'   \item{`$diagnostic_summary()`}{Divergences, trajectories that reached the largest depth, and E-BFMI of each chain,
#'     and the verdict.}
#'   \item{`$verdict()`}{The verdict of the run, in one line.}
#'   \item{`$loo(...)`}{Leave-one-out cross-validation from `log_lik`, by [loo::loo()].}
#'   \item{`$metadata()`}{The attributes of the file: config, seed, versions, hashes of the data.}
#'   \item{`$output_files()`}{The path of the file.}
#' }
#' @export
emass_read <- function(file) {
  file <- existing(file, "a file of draws")
  if (!"posterior" %in% read_groups(file)) refuse(file, ": found no group posterior, expected a file of draws")
  saved <- file.path(inputs_of(file), "brmsfit.rds")
  fit <- new_fit(file)
  if (file.exists(saved)) fill_brmsfit(readRDS(saved), fit) else fit
}

# Draws are read when they are first asked for.
new_fit <- function(file) {
  kept <- new.env(parent = emptyenv())
  once <- function(name, make) {
    if (is.null(kept[[name]])) kept[[name]] <- make(file)
    kept[[name]]
  }
  all_draws <- function() once("draws", read_all_draws)
  diagnostics <- function() once("diagnostics", function(file) {
    first_draws(read_diagnostics(file), posterior::niterations(all_draws()))
  })
  metadata <- function() once("metadata", read_metadata)
  draws <- function(variables = NULL, format = "array") {
    formats <- c("array", "df", "matrix", "list", "rvars")
    short <- sub("^draws_", "", format)
    if (!short %in% formats) refuse("format: found ", format, ", expected ", paste(formats, collapse = ", "))
    all <- all_draws()
    if (!is.null(variables)) all <- of_others(posterior::subset_draws(all, variables))
    getExportedValue("posterior", paste0("as_draws_", short))(all)
  }
  structure(class = "emass_fit", list(
    draws = draws,
    summary = function(variables = NULL, ...) posterior::summarise_draws(draws(variables), ...),
    sampler_diagnostics = diagnostics,
    diagnostic_summary = function() c(summarise_diagnostics(diagnostics(), metadata()), verdict = metadata()$verdict),
    verdict = function() metadata()$verdict,
    loo = function(...) {
      if (!"log_lik" %in% sub("\\[.*", "", posterior::variables(all_draws()))) {
        refuse("loo: found no log_lik in the draws, expected a program whose generated quantities have it")
      }
      values <- draws("log_lik")
      loo::loo(values, r_eff = loo::relative_eff(exp(values)), ...)
    },
    metadata = metadata,
    output_files = function() file
  ))
}

file_of <- function(fit) {
  if (inherits(fit, "emass_fit")) return(fit$output_files())
  if (!is.null(fit$emass)) return(fit$emass$file)
  refuse("found ", class(fit)[[1]], ", expected a file, or a fit of this package")
}

# The log density as lp__, then all variables, those of log_likelihood, posterior_predictive and predictions included.
read_all_draws <- function(file) {
  groups <- c("posterior", "log_likelihood", "posterior_predictive", "predictions")
  groups <- intersect(groups, read_groups(file))
  density <- posterior::subset_draws(read_draws(file, "sample_stats"), "lp")
  posterior::variables(density) <- "lp__"
  all <- c(list(density), lapply(groups, function(group) read_draws(file, group)))
  # Of a run that has not ended, integers are there that are not drawn yet.
  all <- lapply(all, first_draws, min(vapply(all, posterior::niterations, 0L)))
  do.call(posterior::bind_draws, c(all, along = "variable"))
}

first_draws <- function(draws, n) posterior::subset_draws(draws, iteration = seq_len(n))

read_groups <- function(file) {
  opened <- open_draws(file)
  on.exit(ncdf4::nc_close(opened))
  unique(sub("/.*", "", names(opened$var)))
}

read_metadata <- function(file) {
  opened <- open_draws(file)
  on.exit(ncdf4::nc_close(opened))
  utils::capture.output(attributes <- ncdf4::ncatt_get(opened, 0)) # it prints a warning at each that has 8 bytes
  attributes
}

# Columns of sample_stats under the names that Stan gives them.
read_diagnostics <- function(file) {
  names <- c(acceptance_rate = "accept_stat__", step_size = "stepsize__", tree_depth = "treedepth__",
             n_steps = "n_leapfrog__", diverging = "divergent__", energy = "energy__",
             reached_max_treedepth = "reached_max_treedepth__")
  all <- read_draws(file, "sample_stats")
  found <- posterior::subset_draws(all, intersect(names(names), posterior::variables(all)))
  posterior::variables(found) <- unname(names[posterior::variables(found)])
  found
}

summarise_diagnostics <- function(diagnostics, metadata) {
  sums <- function(name) {
    if (name %in% posterior::variables(diagnostics)) unname(colSums(diagnostics[, , name, drop = FALSE])[, 1])
  }
  energy_change <- function(energy) sum(diff(energy)^2) / length(energy) / stats::var(energy)
  list(num_divergent = sums("divergent__"),
       num_max_treedepth = sums("reached_max_treedepth__"),
       ebfmi = if ("energy__" %in% posterior::variables(diagnostics))
         unname(apply(diagnostics[, , "energy__"], 2, energy_change)))
}

#' @export
print.emass_fit <- function(x, ...) {
  print(x$summary(), ...)
  cat(x$verdict(), "\n")
  invisible(x)
}

#' @importFrom posterior as_draws
#' @export
as_draws.emass_fit <- function(x, ...) x$draws(...)
