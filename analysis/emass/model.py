"""Models, with their methods check, sample, predict, loo and evidence."""

from __future__ import annotations

import contextlib
import numbers
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _commands, _library, _options, data, sampling
from ._commands import Draws
from ._density import Bounds, Density, named
from ._errors import Error, Stopped, first_line, needs, path_of, warn
from .data import Files
from .progress import Bar

__all__ = ["Model", "resume"]

Path_ = str | os.PathLike[str]
_REGRESSIONS = ("linear", "logistic", "poisson", "negative_binomial")
_models: weakref.WeakValueDictionary[str, Model] = weakref.WeakValueDictionary()  # of files that this process has made
_stopped: dict[str, Model] = {}  # which resume needs, although nobody else may hold them


class Text(str):
    """Text that Python and notebooks show as it is printed.

    >>> Text("a\\nb")
    a
    b
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return self.rstrip("\n")


class Model:
    """A model to sample. One of the functions from_... or of the names of built-in models makes it.

    >>> model = Model.built_in("eight_schools")
    >>> draws = model.sample(chains=2, draws=50, progress=False)
    >>> draws.posterior["theta"].shape      # (chain, draw, school)
    (2, 50, 8)
    """

    def __init__(self, options: Mapping[str, Any], *, source: Any = None, files: Files | None = None) -> None:
        self._options = dict(options)
        if isinstance(options.get("formula"), str):
            self._options["formula"] = data.one_line(options["formula"])
        self._source = source
        self._files = files or Files()
        self._density: Density | None = None
        self._draws: Draws | None = None
        self._file: str | None = None
        self._folder: Any = None  # keeps the file where it is a temporary one
        self._settings: dict[str, Any] = {}
        self._start: str | None = None  # the folder from which options name files
        self._frame: Any = None  # whose rows have labels

    def __repr__(self) -> str:
        return f"<emass.Model {self._options['name']}>"

    # ------------------------------------------------------------ where models come from

    @classmethod
    def from_stan(cls, program: Path_, data: Any = None, **options: Any) -> Model:
        """A program in the Stan language, which libstanli.so interprets (pip install stanli).

        program: its text, or the path of a file. data: a mapping, whose values may be numbers,
        arrays of any shape or columns of frames; or the path of a JSON file. options: those of the
        model stan, such as posterior_predictive=["y_rep"] (`emass list models stan`).

        >>> model = Model.from_stan("parameters { real x; } model { x ~ normal(0, 1); }")
        >>> model
        <emass.Model stan>
        """
        text = path_of(program, "from_stan", "the text of a program, or the path of a file")
        if not text.strip():
            raise Error("from_stan: found an empty text, expected a program, or the path of a file")
        files = Files()
        given = {"name": "stan", **_options.plain_options(options)}
        if "{" in text or "\n" in text:
            files.add("program", ".stan", text.encode())
        else:
            given["program"] = _options.existing(text, "from_stan")
        return cls(_options.with_stan_data(given, files, data), files=files)

    @classmethod
    def from_bridgestan(cls, library: Path_, data: Any = None, **options: Any) -> Model:
        """A Stan program that BridgeStan has compiled: the path of its shared object. data and
        options as of from_stan."""
        files = Files()
        given = {"name": "stan", "library": _options.existing(library, "from_bridgestan"), **_options.plain_options(options)}
        return cls(_options.with_stan_data(given, files, data), files=files)

    @classmethod
    def from_pymc(cls, model: Any, *, log_likelihood: bool = False) -> Model:
        """A model of PyMC, or of Bambi. PyTensor and numba compile its log density and gradient
        and its deterministics to functions that run without Python. Names, dims and coords are
        those of the model. log_likelihood: report the log likelihood of each observation, for loo.
        Data are those that the model has when it is sampled."""
        from ._pymc import PyMCSource

        return cls({"name": "pymc"}, source=PyMCSource(model, log_likelihood))

    @classmethod
    def from_jax(
        cls,
        log_density: Callable[[Any], Any],
        example: Any,
        *,
        bounds: Mapping[str, Bounds] | None = None,
        outputs: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> Model:
        """A log density in JAX.

        log_density: a function of a pytree with the structure of `example`; returns a scalar. The
        leaves of `example` give the shapes of the parameters. Names are the keys of the tree, "a.b"
        for nested ones, or theta for a single array. bounds: {"sigma": (0, None)}, or "ordered" or
        "simplex" along the last axis; emass transforms such parameters and adds the Jacobian.
        outputs: a function of the parameters that returns a dict of arrays, which are stored too.
        JAX computes in 64 bits."""
        from ._jax import JaxSource

        return cls({"name": "jax"}, source=JaxSource(log_density, example, bounds, outputs))

    @classmethod
    def from_function(
        cls,
        log_density: Callable[..., Any],
        dim: int | None = None,
        *,
        names: Sequence[str] | None = None,
        shapes: Mapping[str, Any] | None = None,
        gradient: Callable[..., Any] | bool | None = None,
        bounds: Mapping[str, Bounds] | None = None,
        outputs: Callable[..., Mapping[str, Any]] | None = None,
    ) -> Model:
        """A log density in Python or numba.

        Give one of: dim, then the functions get one array (dim,); names of scalars, or shapes,
        {"mu": (), "theta": (8,)}, then they get one argument for each parameter, in order.
        gradient: returns the derivatives, (dim,) or one for each argument; True: log_density
        returns (value, gradient); None: there is none. Functions of numba.njit run without Python
        and its lock. An exception, or a result that is not finite, rejects the position; an exit or a
        KeyboardInterrupt ends the run. bounds and outputs are those of from_jax; outputs need a gradient.

        >>> model = Model.from_function(lambda x: (-x @ x / 2, -x), dim=3, gradient=True)
        >>> model.sample(chains=2, draws=50, progress=False).posterior["theta"].shape
        (2, 50, 3)
        """
        from ._functions import FunctionSource

        for what, function in (("log_density", log_density), ("gradient", gradient), ("outputs", outputs)):
            if not callable(function) and (function is log_density or function not in (None, True, False)):
                raise Error(f"from_function: {what}: found {type(function).__name__}, expected a function")
        if outputs and not gradient:
            raise Error("from_function: outputs need a gradient")
        parameters = named(dim, names, shapes, bounds)
        source = FunctionSource(log_density, gradient, parameters, dim is not None, outputs)
        return cls({"name": "function"}, source=source)

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | Path_) -> Model:
        """The model of a config or of its file. The other sections of the config are the defaults of
        sample()."""
        import yaml

        folder = os.getcwd()
        if not isinstance(config, Mapping):
            folder = os.path.dirname(os.path.abspath(path_of(config, "from_config", "a mapping, or the path of a file")))
            try:
                config = data.from_yaml(Path(_options.existing(config, "from_config")).read_text(encoding="utf-8"))
            except (OSError, ValueError, yaml.YAMLError) as error:
                raise Error(f"from_config: {os.fspath(config)}: {' '.join(str(error).split())}") from None
        if not isinstance(config, Mapping) or "name" not in (config.get("model") or {}):
            raise Error("from_config: found no model.name, expected a config of emass")
        options = dict(config["model"])
        if isinstance(options.get("data"), (int, data.Written)) and options["data"] is not True:  # a file that is called 2020, or 1e3
            options["data"] = getattr(options["data"], "text", str(options["data"]))
        options = {key: _options.from_folder(value, folder) for key, value in options.items()}
        model = cls(options)
        model._settings = {key: value for key, value in config.items() if key != "model"}
        return model

    @classmethod
    def built_in(cls, name: str, frame: Any = None, **options: Any) -> Model:
        """A built-in model (`emass list models`), by name. frame: the data, if the model takes a
        table: a frame of pandas or polars, a mapping of columns, or a path."""
        files = Files()
        given = {"name": name, **_options.plain_options(options)}
        if "formula" in given and not isinstance(given["formula"], str):
            found = type(given["formula"]).__name__
            behind = ", and the data behind it" if data.is_frame(given["formula"]) else ""
            raise Error(f"{name}: formula: found {found}, expected text such as 'y ~ x'{behind}")
        if frame is not None and data.is_frame(frame):
            data.refuse_complex(frame, given.get("formula"))
            files.add("data", ".csv", data.table(frame))
            if name in (*_REGRESSIONS, "network") and data.looks_like_row(frame):
                given.setdefault("header", "yes")
            formula = str(given.get("formula") or ".")  # a dot is all columns
            orders = data.level_orders(frame) if name in _REGRESSIONS else {}
            if levels := {column: order for column, order in orders.items() if column in formula or "." in formula}:
                asked = given.get("levels", {})
                given["levels"] = {**levels, **asked} if isinstance(asked, Mapping) else asked
        elif frame is not None:
            given["data"] = os.path.abspath(path_of(frame, f"{name}: data", sampling.A_FRAME))
        model = cls(given, files=files)
        model._frame = frame
        return model

    @classmethod
    def linear(cls, formula: str, frame: Any, **options: Any) -> Model:
        """Linear regression, for example "y ~ x + group". Columns of text and of categories are
        factors; the first category is the reference level, or levels={"group": ["b", "a"]} orders
        them. Truth values are a factor too. Dates are an error: make them numbers. options: `emass list
        models linear`, such as log_likelihood=True,
        standardise=True, noise="student_t", prior={...}.

        >>> model = Model.linear("y ~ x", {"x": [0.0, 1.0, 2.0, 3.0], "y": [0.1, 0.9, 2.2, 2.9]})
        >>> model.sample(chains=2, draws=50, progress=False).posterior["beta"].shape  # (chain, draw, term)
        (2, 50, 2)
        """
        return cls.built_in("linear", frame, formula=formula, **options)

    @classmethod
    def logistic(cls, formula: str, frame: Any, **options: Any) -> Model:
        """Logistic regression of one of two labels (`emass list models logistic`)."""
        return cls.built_in("logistic", frame, formula=formula, **options)

    @classmethod
    def poisson(cls, formula: str, frame: Any, **options: Any) -> Model:
        """Poisson regression of counts (`emass list models poisson`)."""
        return cls.built_in("poisson", frame, formula=formula, **options)

    @classmethod
    def negative_binomial(cls, formula: str, frame: Any, **options: Any) -> Model:
        """Negative binomial regression of counts (`emass list models negative_binomial`)."""
        return cls.built_in("negative_binomial", frame, formula=formula, **options)

    # ------------------------------------------------------------ what is done with them

    def _made(self, progress: bool = True) -> Density | None:
        """The density, compiled once in a process, and again if its model has changed. What takes long says so."""
        if self._source is not None and (self._density is None or not self._density.is_current()):
            with contextlib.closing(Bar(progress and _library.is_first())) as bar:
                if self._source.compiling:
                    bar.show(self._source.compiling)
                self._density = self._source.compile()
        return self._density

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_density": None, "_draws": None, "_folder": None}

    def check(self) -> Text:
        """Compares the gradient with central differences, and describes the run. Raises Error if
        they differ. Returns the text of `emass check` without the options."""
        density = self._made()
        if density is not None:
            return Text(density.check())
        job = sampling.Job({**self._settings, "model": self._options}, self._files, None)
        with data.rows_named(self._frame):
            return Text(_findings(sampling.ask_about(job, "check")))

    def sample(
        self,
        *,
        chains: int | None = None,
        draws: int | str = "auto",
        warmup: int | str | None = None,
        seed: int | None = None,
        ranks: int | None = None,
        temper: bool | str | Mapping[str, Any] = False,
        sampler: str | Mapping[str, Any] | None = None,
        output: Path_ | None = None,
        overwrite: bool = False,
        resume: bool = False,
        progress: bool = True,
        settings: Mapping[str, Any] | None = None,
        comm: Any = None,
    ) -> Draws:
        """Samples; returns ArviZ's object, whose arrays are (chain, draw, ...).

        chains, draws of each chain, warmup, seed: as in a config; "auto" or None: the default.
        ranks: number of processes that emass starts for the chains; None: this process, or under
        mpirun all processes, which must all call this. The draws are the same. temper: True for
        several modes and the evidence; "auto": only if warmup ends in several modes. sampler:
        "nuts", or {"name": "hmc", ...}. output: the file to keep. settings: {"stop.ess": 1000} sets
        any other option of a config. comm: a communicator of mpi4py; the default is all processes.

        An interrupt stops the run with a checkpoint and raises Stopped; emass.resume continues its
        file."""
        config = {**self._settings, "model": dict(self._options)}
        run = dict(config.get("run") or {})
        given = {"chains": chains, "draws": None if draws == "auto" else draws, "warmup": warmup, "seed": seed}
        _options.check_once({**{f"run.{key}": value for key, value in given.items()}, "output.file": output}, settings, "sample")
        for key, value in given.items():
            if value is not None:
                run[key] = _options.number(key, value)
        config["run"] = run
        for what, value in (("temper", temper), ("sampler", sampler), ("settings", settings)):
            if not isinstance(value, (str, Mapping, bool) if what != "settings" else Mapping) and value is not None:
                raise Error(f"sample: {what}: found {value!r}, expected a {'mapping' if what == 'settings' else 'name or a mapping'}")
        if temper is not False:
            config["temper"] = {} if temper is True else temper if isinstance(temper, str) else dict(temper)
        if sampler is not None:
            config["sampler"] = {"name": sampler} if isinstance(sampler, str) else dict(sampler)
        for key, value in (settings or {}).items():
            _options.put(config, key, value)
        if output is not None:
            path_of(output, "sample: output")
        if overwrite and resume:
            raise Error("sample: found overwrite=True and resume=True, expected one of them")
        if resume and not (output or (config.get("output") or {}).get("file")):
            raise Error("sample: resume=True: found no output, expected the file to go on with")
        mode = _library.OVERWRITE if overwrite else _library.RESUME if resume else _library.NEW
        return self._perform(config, mode, output, progress, ranks, comm)

    def _perform(
        self, config: dict[str, Any], mode: int, output: Path_ | None, progress: bool, ranks: int | None, comm: Any
    ) -> Draws:
        named_output = output or (config.get("output") or {}).get("file")
        file = os.path.abspath(os.path.expandvars(os.fspath(named_output))) if named_output else None
        alone = ranks is None or ranks == 1
        if mode == _library.RESUME and file:
            self._check_is_of(file, alone, progress)
        job = sampling.Job(config, self._files, self._source, self._made(progress) if alone else None, file, self._start, mode, progress)
        try:
            with data.rows_named(self._frame):
                self._draws, self._file, self._folder = sampling.perform(job, ranks, comm)
        except Stopped as stopped:
            if stopped.file:
                _stopped[os.path.abspath(stopped.file)] = self
            raise
        except Error as error:
            if file and error.status == 2:
                self._files.remove(Path(file))
            if self._source is not None and "has other data: their hash" in str(error):
                raise _other_function(file) from None
            raise
        if self._file:
            _models[os.path.abspath(self._file)] = self
            _stopped.pop(os.path.abspath(self._file), None)
        if mode == _library.RESUME:
            _warn_of_fewer(self._draws, config["run"].get("draws"))
        return self._draws

    def _is_source_of(self, config: Mapping[str, Any]) -> bool:
        return self._source is not None and self._options["name"] == config["model"]["name"]

    def _check_is_of(self, file: str, compiles: bool, progress: bool = True) -> None:
        """Compares the values of this function with those of the run in the file, if the run is complete, because
        then nothing else compares them. compiles: also if the run is not complete."""
        try:
            attributes = _options.stored(file)[2]
        except Error:  # emass says what is wrong with the file, or there is none
            return
        name, stored = (_options.text_of(attributes.get(key, "")) for key in ("model", "data_hash"))
        if self._source is None or self._options["name"] != name or self in (_models.get(file), _stopped.get(file)):
            return
        if stored == "xxh64:0000000000000000":  # earlier versions had none of a function without a gradient
            return
        if (compiles or attributes.get("complete", 0)) and stored != f"xxh64:{self._made(progress).fingerprint():016x}":
            raise _other_function(file)

    def _read(self, path: str, asked: int | None, progress: bool) -> Draws:
        """The draws of a finished run."""
        self._check_is_of(path, True, progress)
        self._draws, self._file = _commands.read(path), path
        _commands.tell_verdict(self._draws, progress)
        _warn_of_fewer(self._draws, asked)
        return self._draws

    def predict(
        self,
        new: Any,
        draws: Draws | Path_ | None = None,
        *,
        header: str | None = None,
        decimal: str | None = None,
        format: str | None = None,
    ) -> Draws:
        """Predictions for new data from each draw: ArviZ's object with the group predictions, whose
        arrays are (chain, draw, row): mu, the mean, and y, a new response. Rows of a frame of pandas
        keep their labels, and long_name says which response it is: after "log(price) ~ area" they are
        predictions of log(price).

        new: a frame with the columns of the data but the response, or the path of a table; for a PyMC
        model a frame, whose columns with the names of pm.Data of the model are set, or a mapping of
        such names to arrays. draws: the file of a run; None: the last run of this model.
        header ("yes", "no"), decimal ("comma", "point"), format ("semicolon", ...): how to read a
        path; None: as the data of the run were read."""
        reading = {key: value for key, value in (("header", header), ("decimal", decimal), ("format", format)) if value is not None}
        if reading and not isinstance(new, (str, os.PathLike)):
            raise Error(f"predict: found {next(iter(reading))} for {type(new).__name__}, expected the path of a table with it")
        if self._source is not None and hasattr(self._source, "model"):
            return self._predict_by_pymc(new, draws)
        if self._source is not None or self._options["name"] == "stan":
            raise Error(f"predict: {self._options['name']} has no predictions: report them as outputs, or generated quantities")
        if draws is None or draws is self._draws:
            file = self._file
        elif isinstance(draws, (str, os.PathLike)):
            file = os.fspath(draws)
        else:
            raise Error("predict: found other draws than the last ones of this model, expected the path of their file")
        if file is None or not os.path.exists(file):
            raise Error("predict: expected a model that has been sampled, or the file of its draws")
        with data.rows_named(new):
            found = sampling.predict(file, new, self._options["name"], reading)
        return _named_predictions(found, getattr(new, "index", None) if hasattr(new, "to_csv") else None, _response(file))

    def _predict_by_pymc(self, new: Any, draws: Any) -> Draws:
        needs("pymc", "predict")
        return self._source.predict(_commands.draws_of(self._last(draws), "predict"), {} if new is None else new)

    def _last(self, draws: Any) -> Draws:
        if draws is None and self._draws is None:
            raise Error("expected draws, or a model that has been sampled")
        return self._draws if draws is None else draws

    def loo(self, draws: Draws | Path_ | None = None, var: str | None = None) -> Any:
        """Leave-one-out cross-validation: ArviZ's ELPDData, of these draws or the last ones."""
        return _commands.loo(self._last(draws), var)

    def evidence(self, draws: Draws | Path_ | None = None) -> tuple[float, float]:
        """The log evidence of a tempered run and its standard error. emass.evidence compares
        several."""
        table = _commands.evidence(self._last(draws))
        return float(table.log_evidence.iloc[0]), float(table.std_error.iloc[0])


def resume(
    file: Path_,
    model: Model | None = None,
    *,
    draws: int | None = None,
    ranks: int | None = None,
    progress: bool = True,
    settings: Mapping[str, Any] | None = None,
    comm: Any = None,
) -> Draws:
    """Resumes a run that was stopped, or extends a finished one to more draws. The draws are the
    same as those of a run that was not stopped.

    model: needed if it is a function or a PyMC model, unless this process made the file. draws: of
    each chain, in all; if the run has more, a warning says so. settings: options that may change, such as {"stop.max_time": "1h"}."""
    path = os.path.abspath(_options.existing(file, "resume"))
    if model is not None and not isinstance(model, Model):
        raise Error(f"resume: found {type(model).__name__}, expected an emass.Model")
    config, folder, attributes = _options.stored(path)
    if model is None:
        model = _stopped.get(path) or _models.get(path)
    if model is None and config["model"]["name"] in _commands.OF_PYTHON:
        raise Error(f"{os.fspath(file)}: its model is in Python, and this process has not made it: expected emass.resume(file, model)")
    if model is None:
        model = Model(config["model"])
        model._start = folder
    in_one_process = comm is None and not _library.is_launched()
    if in_one_process and not settings and model._is_source_of(config) and _is_finished(attributes, draws):
        return model._read(path, draws, progress)
    config["model"] = dict(model._options)
    config["output"] = {key: value for key, value in (config.get("output") or {}).items() if key != "file"}
    _options.check_once({"run.draws": draws}, settings, "resume")
    if draws is not None:
        if config["run"].get("draws") == "auto":
            raise Error(
                "resume: found draws for a run that its stop rule ends: "
                'expected another rule or limit, settings={"stop.ess": 4000} or {"stop.max_draws": 50000}'
            )
        config["run"]["draws"] = _options.number("draws", draws)
    for key, value in (settings or {}).items():
        _options.put(config, key, value)
    return model._perform(config, _library.RESUME, path, progress, ranks, comm)


def _findings(said: str) -> str:
    """The findings of emass check, without the config and without the output, which is in a temporary folder."""
    lines = [line.removeprefix("# ") for line in said.partition("# plan\n")[2].splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith("output "))


def _is_finished(attributes: Mapping[str, Any], draws: int | None) -> bool:
    """Whether the file of these attributes needs no more, if no option has changed but the number of draws."""
    ended_by = attributes.get("ended_by", b"")
    enough = draws is None or attributes.get("planned_draws", 0) >= draws
    return bool(attributes.get("complete", 0)) and enough and ended_by not in (b"stop.end_after", "stop.end_after")


def _other_function(file: str | None) -> Error:
    return Error(f"{file}: found a model whose log density has other values than that of the run, expected the model that made the file")


def _warn_of_fewer(draws: Draws, asked: Any) -> None:
    """Warns if a finished run has more draws than were asked for, because they are not removed."""
    planned = draws.attrs.get("planned_draws")
    if isinstance(asked, numbers.Integral) and planned is not None and planned > asked:
        warn(f"draws: found {asked}, fewer than the {planned} that the finished run has of each chain: all are returned", UserWarning)


def _response(file: str) -> str:
    """The response of a regression as its formula has it, such as log(price), or ""."""
    options = _options.stored(file)[0]["model"]
    return str(options.get("formula") or "").partition("~")[0].strip() or str(options.get("response") or "")


def _named_predictions(found: Draws, labels: Any, response: str) -> Draws:
    """With the labels of the rows, unless rows with missing values were left out, and the response in long_name."""
    predictions = found["predictions"]
    named = predictions.to_dataset() if hasattr(predictions, "to_dataset") else predictions
    if labels is not None and labels.nlevels == 1 and len(labels) == named.sizes.get("observation"):
        named = named.assign_coords(observation=("observation", labels.to_numpy()))
    for name, words in {"y": response, "mu": f"mean of {response}"}.items() if response else ():
        if name in named:
            named[name].attrs["long_name"] = words
    if hasattr(predictions, "to_dataset"):  # of a DataTree
        predictions.dataset = named
    else:
        found.predictions = named
    return found
