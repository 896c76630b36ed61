# What the program reads: a Stan program, its data as JSON, and a config, in the folder OUTPUT.inputs.

# Numbers as text that is read back as the same numbers.
number_text <- function(x) {
  if (is.logical(x)) x <- as.integer(x)
  text <- sprintf("%.15g", x)
  inexact <- !is.na(x) & as.numeric(text) != x
  text[inexact] <- sprintf("%.17g", x[inexact])
  text[is.infinite(x)] <- ifelse(x[is.infinite(x)] > 0, "\"Inf\"", "\"-Inf\"")
  text
}

# An array as JSON, nested from the last axis to the first. One number without axes is no list.
array_json <- function(x) {
  axes <- dim(x)
  if (is.null(axes)) axes <- if (length(x) == 1) integer() else length(x)
  text <- number_text(if (length(axes) > 1) aperm(x) else x) # the last axis varies fastest
  for (i in rev(seq_along(axes))) {
    rows <- prod(axes[seq_len(i - 1)])
    row <- factor(rep(seq_len(rows), each = axes[[i]]), seq_len(rows))
    text <- sprintf("[%s]", vapply(split(text, row), paste, "", collapse = ",")) # of none, none
  }
  text
}

# One variable of Stan as JSON: numbers, factors, logical values, tables of numbers, and lists of these. Lists are
# arrays, or tuples if they have names.
value_json <- function(x, name, what = "data") {
  if (is.data.frame(x)) x <- data.matrix(x)
  if (is.list(x)) {
    parts <- vapply(x, value_json, "", name, what)
    if (is.null(names(x))) return(paste0("[", paste(parts, collapse = ","), "]"))
    return(paste0("{", paste0("\"", names(x), "\":", parts, collapse = ","), "}"))
  }
  if (is.factor(x)) x <- as.integer(x)
  if (!is.numeric(x) && !is.logical(x)) {
    refuse(what, ": ", name, ": found ", class(x)[[1]], ", expected numbers")
  }
  if (anyNA(x)) refuse(what, ": ", name, ": found missing values, which Stan does not have")
  array_json(x)
}

data_json <- function(data, what = "data") {
  if (!is.list(data)) {
    refuse(what, ": found ", class(data)[[1]], ", expected a list with a name for each variable, or a path")
  }
  if (length(data) && !all(nzchar(names(data)), length(names(data)) == length(data))) {
    refuse(what, ": found a value without a name, expected a list with a name for each variable")
  }
  values <- vapply(names(data), function(name) value_json(data[[name]], name, what), "")
  c("{", paste0("\"", names(data), "\": ", values, c(rep(",", max(0, length(data) - 1)), "")), "}")
}

# A program is text, or the path of a file: a program, or a shared object that BridgeStan has compiled. What is text
# goes into the folder; a file is used where it is, as it may include others.
program_option <- function(code, folder) {
  text <- paste(code, collapse = "\n")
  if (grepl("[{\n]", text)) {
    writeLines(text, file.path(folder, "program.stan"))
    return(list(program = "program.stan"))
  }
  path <- existing(text, "a Stan program or its path")
  if (grepl("\\.so$", path)) list(library = path) else list(program = path)
}

# Data, or where chains begin: a list goes into the folder; a file is used where it is.
values_option <- function(values, name, folder) {
  if (is.character(values)) return(existing(values, "values of Stan as JSON"))
  file <- paste0(name, ".json")
  writeLines(data_json(values, name), file.path(folder, file))
  file
}

# Puts a value at a key such as run.chains into a list of lists. Without a value the list stays as it is.
put <- function(config, key, value) {
  if (is.null(value)) return(config)
  path <- strsplit(key, ".", fixed = TRUE)[[1]]
  if (length(path) > 1) value <- put(as.list(config[[path[[1]]]]), paste(path[-1], collapse = "."), value)
  config[[path[[1]]]] <- value
  config
}

# Writes the config of a run. JSON is a part of YAML.
write_config <- function(config, folder) {
  text <- jsonlite::toJSON(config, auto_unbox = TRUE, digits = NA, pretty = TRUE)
  writeLines(text, file.path(folder, "config.yaml"))
}
