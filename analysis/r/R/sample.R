# Sampling of Stan programs, and going on with a run that was stopped.

#' Sample a Stan program
#'
#' Runs the program emass, and returns when it has ended. The draws are the same on any number of ranks.
#'
#' An interrupt (Ctrl-C, or the stop sign of an editor) makes the run write a checkpoint and end; so does `max_time`.
#' If R itself ends, by SIGTERM or SIGKILL, the run does the same.
#' [emass_resume()] goes on from there, with the draws that the run would have made without the stop.
#'
#' Every error of this package has the class `emass_error`: of arguments, of data and files, and of the program, whose
#' message it has. If a run was stopped, the error also has the class `emass_stopped`.
#'
#' @param code A Stan program as text, or the path of its file, or that of a shared object compiled by BridgeStan.
#' @param data A list with a value for each variable of the data block, or the path of a file of JSON.
#' @param chains,draws,warmup,thin,seed Chains, draws of each chain, iterations of warmup, iterations of each stored
#'   draw, and the seed. `NULL`: the default of the program; warmup then ends by its own criteria.
#' @param ranks Processes that share the chains. `NULL`: one for each chain, at most one for each core, or for each of
#'   the option `mc.cores`.
#' @param sampler A name, such as `"nuts"`, or a list with options: `list(name = "nuts", target_accept = 0.95)`.
#' @param init Where chains begin: a list with a value for each parameter, or the path of a file of JSON, or a number
#'   `r`: uniformly in `[-r, r]` on the unconstrained scale.
#' @param max_time Seconds, or a text such as `"3h"`, after which the run stops with a checkpoint.
#' @param settings Other options of a config by their keys, such as `list("stop.ess" = 400)`; `emass list` has all.
#' @param output The file of the draws, HDF5 in the schema of ArviZ. `NULL`: a file that is removed at the end of
#'   the session. A folder beside it, whose name ends in `.inputs`, keeps the inputs that [emass_resume()] needs.
#' @param overwrite Whether to replace an existing file.
#' @param quiet Whether to hide the progress. The verdict at the end is a message, which [suppressMessages()] hides.
#' @return A fit, whose functions [emass_read()] lists.
#' @examples
#' \dontrun{
#' code <- "data { int N; vector[N] y; } parameters { real mu; real<lower=0> sigma; }
#'   model { mu ~ normal(0, 2); sigma ~ exponential(1); y ~ normal(mu, sigma); }"
#' fit <- emass_sample(code, list(N = 3, y = c(1.5, 2, 2.25)), chains = 4, draws = 1000)
#' fit$summary()
#' }
#' @export
emass_sample <- function(code, data = NULL, chains = 4, draws = NULL, warmup = NULL, thin = NULL, seed = 1,
                         ranks = NULL, sampler = NULL, init = NULL, max_time = NULL, settings = list(),
                         output = NULL, overwrite = FALSE, quiet = FALSE) {
  file <- run_stan(code, data, chains, draws, warmup, thin, seed, ranks, sampler, init, max_time, settings, output,
                   overwrite, quiet)
  read_and_tell(file)
}

# The fit of a run that has ended. Its verdict is a message, which suppressMessages() hides.
read_and_tell <- function(file) {
  fit <- emass_read(file)
  message(if (inherits(fit, "emass_fit")) fit$verdict() else fit$emass$verdict)
  fit
}

# Does so, and returns the file. `also` is given the folder of what the run reads, to put more there. `before` is the
# config of another run, without its model, whose options hold where none are given.
run_stan <- function(code, data, chains, draws, warmup, thin, seed, ranks, sampler, init, max_time, settings, output,
                     overwrite, quiet, also = function(folder) NULL, before = list()) {
  write <- function(folder) {
    config <- c(list(model = c(list(name = "stan"), program_option(code, folder))), before)
    if (length(data)) config$model$data <- values_option(data, "data", folder)
    if (!is.null(init) && !is.numeric(init)) config$model$init <- values_option(init, "init", folder)
    if (is.character(sampler)) sampler <- list(name = sampler)
    values <- list(sampler = sampler, run.chains = chains, run.draws = draws, run.warmup = warmup, run.thin = thin,
                   run.seed = seed, run.init_radius = if (is.numeric(init)) init, stop.max_time = max_time)
    values <- replaced(values, settings)
    for (key in names(values)) config <- put(config, key, values[[key]])
    write_config(config, folder)
    also(folder)
  }
  start_run(write, output, if (is.null(ranks)) default_ranks(chains) else ranks, overwrite, quiet)
}

#' Go on with a run
#'
#' A run that was stopped goes on from its checkpoint, on any number of ranks. One that is finished is extended, and its
#' draws are kept.
#'
#' @param x The file of the draws, or a fit of [emass_sample()], [emass_brm()] or [emass_read()].
#' @param draws Draws of each chain in all. `NULL`: as many as were planned.
#' @param max_time,settings,quiet As in [emass_sample()]; of the settings only some may change, as `emass list` says.
#' @param ranks Processes, as in [emass_sample()].
#' @return A fit of the same kind.
#' @export
emass_resume <- function(x, draws = NULL, ranks = NULL, max_time = NULL, settings = list(), quiet = FALSE) {
  file <- if (is.character(x)) existing(x, "a file of draws") else file_of(x)
  config <- file.path(inputs_of(file), "config.yaml")
  if (!file.exists(config)) {
    refuse(config, ": found no such file, expected the config of the run beside ", basename(file))
  }
  if (is.null(ranks)) ranks <- default_ranks(jsonlite::read_json(config)$run$chains)
  # A time limit is that of one start: without one now, there is none.
  values <- list(run.draws = draws, stop.max_time = if (is.null(max_time)) "none" else max_time)
  values <- replaced(values, settings)
  text <- vapply(Filter(Negate(is.null), values), function(v) {
    if (is.character(v) && length(v) == 1) v else as.character(jsonlite::toJSON(v, auto_unbox = TRUE, digits = NA))
  }, "")
  arguments <- c("run", config, "--output", file, "--ranks", ranks, "--resume",
                 rbind(rep("--set", length(text)), paste0(names(text), "=", text)), "--progress", "log")
  run_program(arguments, shower(quiet), file)
  read_and_tell(file)
}

# Values of a config with the settings in their place.
replaced <- function(values, settings) {
  if (length(settings) && (is.null(names(settings)) || !all(nzchar(names(settings))))) {
    refuse("settings: found ", class(settings)[[1]], " without names, expected a list such as list(\"stop.ess\" = 400)")
  }
  values[names(settings)] <- settings
  values
}

# The folder of what a run reads, beside its file.
inputs_of <- function(file) paste0(file, ".inputs")

shower <- function(quiet) if (quiet) function(line) NULL else message

# Runs what `write` puts into the folder beside the output, and returns the path of the output. Where the program
# refuses it, all is as it was before: an earlier output keeps its own folder.
start_run <- function(write, output, ranks, overwrite, quiet) {
  if (is.null(output)) {
    folder <- tempfile("emass-")
    dir.create(folder)
    output <- file.path(folder, "draws.h5")
  }
  file <- file.path(existing(dirname(output), "the folder of the output"), basename(output))
  if (file.exists(file) && !overwrite) {
    refuse(output, ": found a file, expected none; give overwrite = TRUE or another output, or call emass_resume()")
  }
  folder <- inputs_of(file)
  earlier <- paste0(folder, ".earlier")
  if (file.exists(folder)) file.rename(folder, earlier)
  dir.create(folder)
  refused <- TRUE
  on.exit({
    unlink(if (refused) folder else earlier, recursive = TRUE)
    if (refused && file.exists(earlier)) file.rename(earlier, folder)
  })
  write(folder)
  arguments <- c("run", file.path(folder, "config.yaml"), "--output", file, "--ranks", ranks,
                 if (overwrite) "--overwrite", "--progress", "log")
  tryCatch(run_program(arguments, shower(quiet), file), emass_error = function(condition) {
    refused <<- condition$status == 2
    stop(condition)
  })
  refused <- FALSE
  file
}
