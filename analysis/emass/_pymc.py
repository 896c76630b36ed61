"""Densities by models of PyMC, compiled by PyTensor and numba (Model.from_pymc)."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from ._density import LOG_LIKELIHOOD, Density, Variable
from ._errors import Error, first_line, needs
from .data import is_frame

__all__ = ["PyMCSource"]

MOST_AXES = 6  # EM_MAX_AXES
MOST_DATA = 1_000_000  # numbers of an array that are copied into the file


@dataclasses.dataclass
class PyMCSource:
    """The arguments of from_pymc. cloudpickle sends them to other ranks."""

    model: Any
    log_likelihood: bool = False
    name: str = "pymc"
    compiling: ClassVar[str] = "compiling the model of PyMC by PyTensor and numba"

    def __post_init__(self) -> None:
        backend = getattr(self.model, "backend", None)
        if hasattr(self.model, "build") and hasattr(self.model, "formula"):  # a model of Bambi
            if backend is None or not getattr(self.model, "built", True):
                self.model.build()
            self.model = self.model.backend.model
        if not hasattr(self.model, "rvs_to_values"):
            raise Error(f"from_pymc: found {type(self.model).__name__}, expected a model of PyMC or Bambi")

    def compile(self) -> Density:
        """Makes the density from two functions that numba compiles, which run without Python."""
        needs("numba", "from_pymc")
        needs("pymc", "from_pymc")
        from pymc.model.transform.optimization import freeze_dims_and_data

        if discrete := [one.name for one in self.model.discrete_value_vars]:
            raise Error(f"from_pymc: {discrete[0]} is discrete: marginalise it (pymc-extras), because it has no gradient")
        model = _with_cut_angles(freeze_dims_and_data(self.model))
        free, point, shapes = _point(model)
        made = Density(self.name, dim=int(sum(np.prod(shape, dtype=int) for shape in shapes)))
        made.unconstrained = _names([one.name for one in free], shapes)
        reported = list(model.unobserved_RVs)
        likelihood = dict(_log_likelihoods(model)) if self.log_likelihood else {}
        values = [*model.replace_rvs_by_values(reported), *likelihood.values()]
        sizes = _shapes(model, values, free, shapes)
        made.outputs = _variables(model, reported, likelihood, sizes)
        made.labels = {name: [str(one) for one in labels] for name, labels in model.coords.items() if labels is not None}
        made.data = list(_data(self.model))
        density = _gradient(model, free, point, shapes)
        outputs = _outputs(values, free, point, shapes)
        first = _as_gradient(density, made.dim)
        second = _as_outputs(outputs, made.dim, sum(one.size for one in made.outputs))
        content = _content(self.model)
        made.is_current = lambda: _is_same(content, _content(self.model))
        made.gradient, made.outputs_function, made.keep = first.address, second.address, (first, second, density, outputs)
        return made

    def predict(self, draws: Any, new: Any) -> Any:
        """Draws of the posterior predictive distribution with pm.Data set to the columns of a frame, or to a mapping."""
        import pymc

        arrays = _arrays(self.model, new)
        coords = _coords(self.model, arrays, getattr(new, "index", None))
        before = {name: self.model[name].get_value() for name in arrays}, {axis: self.model.coords[axis] for axis in coords}
        with self.model:
            try:
                pymc.set_data(arrays, coords=coords)
                return pymc.sample_posterior_predictive(draws, predictions=True, progressbar=False)
            except Exception as error:  # whatever PyMC raises for these data
                raise Error(f"predict: {first_line(error)}") from error
            finally:
                pymc.set_data(before[0], coords=before[1])


def _with_cut_angles(model: Any) -> Any:
    """The model with its angles (VonMises) on a circle that is cut opposite of their initial values. In the coordinates of
    PyMC they take any value, so that their density repeats for ever and has no integral."""
    import pytensor.tensor as pt
    from pymc.distributions.transforms import CircularTransform
    from pymc.logprob.transforms import Transform
    from pymc.model.transform.conditioning import change_value_transforms

    class Cut(Transform):  # type: ignore[misc]
        name = "cut"

        def __init__(self, centre: Any) -> None:
            self.centre = np.asarray(centre)

        def forward(self, value: Any, *inputs: Any) -> Any:
            away = value - self.centre
            share = pt.arctan2(pt.sin(away), pt.cos(away)) / (2 * np.pi) + 0.5
            return pt.log(share) - pt.log1p(-share)

        def backward(self, value: Any, *inputs: Any) -> Any:
            angle = self.centre + 2 * np.pi * pt.sigmoid(value) - np.pi
            return pt.arctan2(pt.sin(angle), pt.cos(angle))

        def log_jac_det(self, value: Any, *inputs: Any) -> Any:
            return np.log(2 * np.pi) - pt.softplus(value) - pt.softplus(-value)

    angles = [one for one in model.free_RVs if isinstance(model.rvs_to_transforms[one], CircularTransform)]
    first = model.initial_point() if angles else {}
    cut = {one: Cut(first[model.rvs_to_values[one].name]) for one in angles}
    return change_value_transforms(model, cut) if cut else model


def _arrays(model: Any, new: Any) -> dict[str, Any]:
    """The new value of each pm.Data. A frame may have other columns too, such as the response."""
    names = [one.name for one in model.data_vars]
    known = f"pm.Data of the model: {', '.join(names)}" if names else "pm.Data, of which the model has none (one of Bambi: its own predict takes draws)"
    if not is_frame(new):
        raise Error(f"predict: found {type(new).__name__}, expected a frame or a mapping with values for {known}")
    if isinstance(new, Mapping):
        if unknown := [name for name in new if name not in names]:
            raise Error(f"predict: found {unknown[0]!r}, expected {known}")
        return dict(new)
    frame = new.collect() if hasattr(new, "collect") else new
    if not (found := [name for name in names if name in frame.columns]):
        columns = ", ".join(map(str, frame.columns))
        raise Error(f"predict: found a frame with the columns {columns}, expected one of {known}")
    return {name: _numbers(name, frame[name]) for name in found}


def _numbers(name: str, column: Any) -> Any:
    values = np.asarray(column)
    if values.dtype.kind not in "biuf":
        raise Error(f"predict: column {name}: found {values[0]!r}, expected numbers, as pm.Data {name!r} has")
    return values


def _coords(model: Any, arrays: Mapping[str, Any], index: Any) -> dict[str, Any]:
    """Labels of the axes whose length changes: those of the frame's index, or numbers."""
    coords: dict[str, Any] = {}
    for name, values in arrays.items():
        for i, axis in enumerate(model.named_vars_to_dims.get(name) or ()):
            length = np.shape(values)[i] if i < np.ndim(values) else None
            if length is not None and model.coords.get(axis) is not None and len(model.coords[axis]) != length:
                coords[axis] = list(index) if i == 0 and index is not None else list(range(length))
    return coords


def _point(model: Any) -> tuple[list[Any], Any, list[tuple[int, ...]]]:
    """The unconstrained variables, one vector with all of them, and their shapes."""
    import pytensor.tensor as pt

    start = model.initial_point(random_seed=0)
    free = [model.rvs_to_values[one] for one in model.free_RVs]
    shapes = [tuple(np.shape(start[one.name])) for one in free]
    size = int(sum(np.prod(shape, dtype=int) for shape in shapes))
    if size == 0:
        raise Error("from_pymc: found no free variable in the model")
    return free, pt.TensorType("float64", shape=(size,))(name="_point"), shapes


def _names(bases: list[str], shapes: list[tuple[int, ...]]) -> list[str]:
    return [
        f"{base}[{','.join(map(str, at))}]" if shape else base
        for base, shape in zip(bases, shapes, strict=True)
        for at in np.ndindex(shape)
    ]


def _replacements(free: list[Any], point: Any, shapes: list[tuple[int, ...]]) -> dict[Any, Any]:
    """Replaces each variable by its part of the vector."""
    found, start = {}, 0
    for one, shape in zip(free, shapes, strict=True):
        size = int(np.prod(shape, dtype=int))
        found[one] = point[start : start + size].reshape(shape).astype(one.dtype)
        start += size
    return found


def _shapes(model: Any, values: list[Any], free: list[Any], shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    import pytensor

    start = model.initial_point(random_seed=0)
    of = pytensor.function(free, [one.shape for one in values], mode="FAST_COMPILE", on_unused_input="ignore")
    return [tuple(int(length) for length in shape) for shape in of(*(start[one.name] for one in free))]


def _log_likelihoods(model: Any) -> Any:
    for observed, term in zip(model.observed_RVs, model.logp(vars=model.observed_RVs, sum=False), strict=True):
        yield observed.name, term


def _data(model: Any) -> Iterator[tuple[str, Variable, np.ndarray]]:
    """The arrays of numbers that PyMC puts into observed_data and constant_data."""
    observed = {one.name: model.rvs_to_values[one] for one in model.observed_RVs}
    fixed = {one.name: one for one in model.data_vars if not any(one is other for other in observed.values())}
    for group, arrays in (("observed_data", observed), ("constant_data", fixed)):
        for name, one in arrays.items():
            get = getattr(one, "get_value", lambda one=one: getattr(one, "data", None))
            values = np.asarray(get())
            if values.dtype.kind not in "biuf" or values.ndim > MOST_AXES or not 0 < values.size <= MOST_DATA:
                continue
            axes = tuple(model.named_vars_to_dims.get(name) or ())
            kept = axes if len(axes) == values.ndim else None
            yield group, Variable(name, values.shape, kept), np.ascontiguousarray(values, dtype=np.float64)


def _variables(model: Any, reported: list[Any], likelihood: Any, sizes: list[tuple[int, ...]]) -> list[Variable]:
    storage = {"b": 2, "i": 1, "u": 1}  # em_storage
    made = []
    for one, shape in zip([*reported, *likelihood], sizes, strict=True):
        name = one if isinstance(one, str) else one.name
        axes = tuple(model.named_vars_to_dims.get(name) or ())
        group = LOG_LIKELIHOOD if isinstance(one, str) else 0
        kind = 0 if isinstance(one, str) else storage.get(np.dtype(one.dtype).kind, 0)
        made.append(Variable(name, shape, axes if len(axes) == len(shape) else None, group=group, storage=kind))
    return made


def _compile(inputs: list[Any], outputs: list[Any]) -> Any:
    """Takes numba's function out of the function that PyTensor compiles, without PyTensor's cache on disk: code from
    there is not inlined and sums in another order, so that ranks, or a run and its resume, would round otherwise. For
    the same reason each rank compiles: numba's machine code may hold addresses of its process, of gammaln for example."""
    import pytensor

    flags = {"numba__cache": False} if hasattr(pytensor.config, "numba__cache") else {}
    with pytensor.config.change_flags(**flags):
        function = pytensor.function(inputs, outputs, mode="NUMBA", on_unused_input="ignore")
    for shared in function.get_shared():
        if isinstance(shared.get_value(borrow=True), np.random.Generator):
            raise Error("from_pymc: the model draws random numbers in each evaluation, as pm.Minibatch does: expected all of the data")
        raise Error(f"from_pymc: found the shared variable {shared.name or shared}, expected pm.Data in its place")
    return function.vm.jit_fn


def _content(model: Any) -> tuple[list[str], dict[str, Any], dict[str, np.ndarray]]:
    """What of a model may change after it has been compiled: variables, labels and data."""
    labels = {name: None if one is None else tuple(one) for name, one in model.coords.items()}
    return list(model.named_vars), labels, {one.name: one.get_value() for one in model.data_vars}


def _is_same(one: Any, other: Any) -> bool:
    return (
        one[:2] == other[:2]
        and one[2].keys() == other[2].keys()
        and all(np.array_equal(values, other[2][name], equal_nan=values.dtype.kind == "f") for name, values in one[2].items())
    )


def _gradient(model: Any, free: list[Any], point: Any, shapes: list[tuple[int, ...]]) -> Any:
    import pytensor
    import pytensor.tensor as pt

    rewrites = ["canonicalize", "stabilize"] + ([] if model.check_bounds else ["local_remove_check_parameter"])
    value = pytensor.graph.rewrite_graph(model.logp(), include=rewrites)
    try:
        slope = pt.concatenate([one.ravel() for one in pytensor.gradient.grad(value, free)])
    except (NotImplementedError, pytensor.gradient.NullTypeGradError, pytensor.gradient.DisconnectedInputError) as error:
        raise Error(f"from_pymc: PyTensor finds no gradient: {first_line(error)} (a log density without one: from_function)") from error
    both = pytensor.graph.replace.clone_replace([value, slope], _replacements(free, point, shapes))
    return _compile([point], both)


def _outputs(values: list[Any], free: list[Any], point: Any, shapes: list[tuple[int, ...]]) -> Any:
    import pytensor
    import pytensor.tensor as pt

    all_of_them = pt.concatenate([one.ravel().astype("float64") for one in values])
    return _compile([point], pytensor.graph.replace.clone_replace([all_of_them], _replacements(free, point, shapes)))


def _cfunc(signature: Any, function: Any) -> Any:
    import numba

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaWarning)
        return numba.cfunc(signature)(function)


def _as_gradient(inner: Any, n: int) -> Any:
    import numba
    from numba import types

    def call(state, theta, log_density, gradient):  # type: ignore[no-untyped-def]
        try:
            value, slope = inner(numba.carray(theta, (n,)))
            log_density[0] = value.item()
            numba.carray(gradient, (n,))[:] = slope
        except Exception:  # numba knows no other
            return 1
        return 0

    numbers = types.CPointer(types.float64)
    return _cfunc(types.int32(types.voidptr, numbers, numbers, numbers), call)


def _as_outputs(inner: Any, n: int, width: int) -> Any:
    import numba
    from numba import types

    def call(state, theta, out):  # type: ignore[no-untyped-def]
        try:
            (values,) = inner(numba.carray(theta, (n,)))
            numba.carray(out, (width,))[:] = values
        except Exception:  # likewise
            return 1
        return 0

    numbers = types.CPointer(types.float64)
    return _cfunc(types.int32(types.voidptr, numbers, numbers), call)
