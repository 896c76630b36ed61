# A part of the package that also works alone: source("analysis/read_draws.R"). It needs ncdf4 and posterior.

#' Read draws of a file of emass, or of any in the schema of ArviZ
#'
#' @param path The file.
#' @param group `"posterior"`, `"sample_stats"`, `"warmup_posterior"`, ...
#' @return A `draws_array` of posterior.
#' @examples
#' \dontrun{
#' draws <- read_draws("demo.h5")
#' posterior::summarise_draws(draws)
#' bayesplot::mcmc_trace(draws, pars = c("mu", "tau"))
#' }
#' @export
read_draws <- function(path, group = "posterior") {
  file <- open_draws(path)
  on.exit(ncdf4::nc_close(file))
  attribute <- function(...) { # ncdf4 prints a warning at each that has 8 bytes
    utils::capture.output(value <- ncdf4::ncatt_get(file, ...))
    value
  }
  inside <- function(name) startsWith(name, paste0(group, "/"))
  is_drawn <- function(variable) {
    dims <- basename(vapply(variable$dim, `[[`, "", "name"))
    length(dims) >= 2 && identical(tail(dims, 2), c("draw", "chain")) # the other way round in R
  }
  labels <- function(dim, base) { # text where there is some, else what the axis counts, from `base`
    name <- paste0(group, "/", basename(dim$name))
    if (name %in% names(file$var)) return(ncdf4::ncvar_get(file, name))
    if (is.numeric(dim$vals)) dim$vals + base else dim$vals
  }
  read <- function(variable) {
    values <- ncdf4::ncvar_get(file, variable$name, collapse_degen = FALSE)
    n <- length(dim(values))
    axes <- rev(variable$dim[seq_len(n - 2)])
    values <- aperm(values, c(n - 1, n, rev(seq_len(n - 2))))
    base <- attribute(variable$name, "index_base") # 1 in Stan's programs, else absent
    index <- expand.grid(lapply(axes, labels, if (base$hasatt) base$value else 0), stringsAsFactors = FALSE)
    name <- basename(variable$name)
    if (length(axes)) name <- paste0(name, "[", do.call(paste, c(unname(index), sep = ",")), "]")
    array(values, c(dim(values)[1:2], length(name)), list(NULL, NULL, name))
  }
  found <- Filter(function(variable) inside(variable$name) && is_drawn(variable), file$var)
  if (length(found) == 0) {
    groups <- unique(dirname(vapply(Filter(is_drawn, file$var), `[[`, "", "name")))
    refuse(path, ": no draws in group ", group, ", but in ", paste(groups, collapse = ", "))
  }
  arrays <- lapply(unname(found), read)
  names <- unlist(lapply(arrays, function(a) dimnames(a)[[3]]))
  all <- array(unlist(arrays), c(dim(arrays[[1]])[1:2], length(names)), list(NULL, NULL, names))
  drawn <- apply(!is.na(all), 1, any) # of a run that has not ended, those so far
  if (!any(drawn)) refuse(path, ": group ", group, " has no draws yet")
  posterior::as_draws_array(all[seq_len(max(which(drawn))), , , drop = FALSE])
}

open_draws <- function(path) {
  if (!file.exists(path)) refuse(path, ": found no such file, expected a file of draws")
  utils::capture.output(file <- ncdf4::nc_open(path, return_on_error = TRUE)) # it prints an error too
  if (isTRUE(file$error)) refuse(path, ": found no HDF5 in it, expected a file of draws")
  file
}

# An error of class emass_error, as those of the program are: of arguments, data or files that are refused.
refuse <- function(...) {
  stop(structure(class = c("emass_error", "error", "condition"), list(message = paste0(...), call = NULL, status = 2L)))
}
