# The program emass: where it is, how it is run, and what becomes of what it says.

#' The program that the functions of this package run
#'
#' The option `emass.program`, or else the environment variable `EMASS`, names it; otherwise it is `emass` on the `PATH`.
#'
#' @return The path of the program. It is an error if there is none.
#' @export
emass_program <- function() {
  named <- c(getOption("emass.program"), Sys.getenv("EMASS", NA))
  named <- named[!is.na(named) & nzchar(named)]
  found <- if (length(named)) Sys.which(path.expand(named[[1]])) else Sys.which("emass")
  if (!nzchar(found)) {
    refuse(if (length(named)) named[[1]] else "emass", ": found no such program; put emass on the PATH, or set the ",
           "environment variable EMASS to its path")
  }
  unname(found)
}

# The number of ranks that a run gets if the caller names none: one for each chain, at most one for each core.
default_ranks <- function(chains) {
  cores <- getOption("mc.cores", parallel::detectCores(logical = FALSE))
  max(1L, min(chains, cores, na.rm = TRUE))
}

# What a function of another package returns; what it refuses is an error of this one, in one line.
of_others <- function(expr) {
  tryCatch(expr, error = function(condition) refuse(gsub("\\s*\n\\s*", " ", conditionMessage(condition))))
}

# The full path of a file or a folder that is there.
existing <- function(path, expected) {
  if (!is.character(path) || length(path) != 1) refuse("found ", class(path)[[1]], ", expected ", expected, ", by its path")
  if (!file.exists(path)) refuse(path, ": found no such file, expected ", expected)
  normalizePath(path)
}

# Turns what the program said into an R error. `status` is its exit status: 1 while running, 2 usage, config or
# data, 75 stopped with a checkpoint. The class tells the last from the others.
fail <- function(status, said, file = NULL) {
  lines <- sub("^emass: (rank [0-9]+: )?", "", grep("^emass: ", said, value = TRUE))
  lines <- gsub("\\S*[.]inputs/config[.]yaml(:[0-9]+)?", "config", lines) # whose lines nobody has seen
  lines <- gsub("\\S*[.]inputs/(program|data|init)[.](stan|json)", "\\1", lines)
  message <- paste(if (length(lines)) lines else said, collapse = "\n")
  if (!nzchar(message)) message <- paste("emass: exit status", status)
  message <- gsub("give --overwrite, --resume or another --output",
                  "give overwrite = TRUE or another output, or call emass_resume()", message, fixed = TRUE)
  message <- gsub("--ranks N starts N", "ranks = N starts N", message, fixed = TRUE)
  message <- gsub("--set (\\S+: )", "settings: \\1", message)
  message <- gsub("go on with --resume", sprintf("go on with emass_resume(\"%s\")", file), message, fixed = TRUE)
  class <- c(if (status == 75) "emass_stopped", "emass_error", "error", "condition")
  stop(structure(class = class, list(message = message, call = NULL, status = status, file = file)))
}

# What etc/ldpaths, which starts R, puts first into LD_LIBRARY_PATH: folders of R and of the system.
folders_of_r <- function() {
  script <- file.path(R.home("etc"), "ldpaths")
  if (!file.exists(script)) return("")
  said <- system2("sh", c("-c", shQuote(". \"$0\" && printf %s \"$LD_LIBRARY_PATH\""), shQuote(script)),
                  stdout = TRUE, env = "LD_LIBRARY_PATH=")
  paste(said, collapse = "")
}

# A path without those folders, as it was before R was started, maybe by another R. What a user or a module has put
# there stays.
path_before_r <- function(path, added) {
  if (!nzchar(added)) return(path)
  while (startsWith(path, paste0(added, ":"))) path <- substring(path, nchar(added) + 2)
  if (path == added) "" else path
}

# The environment of the program. In the folders of R it would find other versions of its libraries.
environment_of_program <- function() {
  path <- path_before_r(Sys.getenv("LD_LIBRARY_PATH"), folders_of_r())
  c("current", EMASS_PARENT = Sys.getpid(), LD_LIBRARY_PATH = path)
}

# Runs the program with these arguments and returns when it has ended. `show` is given each line of progress. An
# interrupt asks the program to write its checkpoint and to end, which is then the error of a run that was stopped. So
# does the end of R, by whatever signal: EMASS_PARENT lets the program notice it. processx would kill the program.
run_program <- function(arguments, show, file) {
  process <- processx::process$new(emass_program(), arguments, stderr = "|", encoding = "UTF-8", cleanup = FALSE,
                                   env = environment_of_program())
  on.exit(if (process$is_alive()) process$signal(tools::SIGTERM))
  said <- character()
  running <- TRUE
  while (running) {
    tryCatch({
      process$poll_io(200)
      lines <- process$read_error_lines()
      progress <- grepl("^[0-9-]{10} [0-9:]{8} ", lines)
      said <- c(said, lines[!progress])
      for (line in substring(lines[progress], 21)) show(line)
      running <- process$is_alive() || process$is_incomplete_error()
    }, interrupt = function(condition) process$interrupt())
  }
  status <- process$get_exit_status()
  if (status != 0) fail(status, said, file)
  for (line in sub("^emass: ", "", said)) message(line)
}
