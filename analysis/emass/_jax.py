"""Densities by functions of JAX (Model.from_jax)."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ._density import Bounds, Density, Variable, bounds_by_name, gradient_function, output_variables, outputs_function
from ._errors import Error, needs, warn

__all__ = ["JaxSource"]


@dataclasses.dataclass
class JaxSource:
    """The arguments of from_jax, with the example as arrays of numpy. cloudpickle sends them to other ranks."""

    function: Callable[[Any], Any]
    example: Any
    bounds: Mapping[str, Bounds] | None = None
    outputs: Callable[[Any], Mapping[str, Any]] | None = None
    name: str = "jax"
    compiling: ClassVar[str] = "compiling the function by JAX"

    def __post_init__(self) -> None:
        jax = needs("jax", "from_jax")
        self.example = jax.tree_util.tree_map(_numbers, self.example)
        if not jax.tree_util.tree_leaves(self.example):
            raise Error("from_jax: found no parameters in the example, expected a number or an array for each")
        paths = [_path(path) for path, _ in jax.tree_util.tree_flatten_with_path(self.example)[0]]
        for path, name in zip(paths, names := [path.replace("/", "_") for path in paths], strict=True):
            if names.count(name) > 1:
                raise Error(f"from_jax: found {path!r} in the example beside another parameter that is called {name} in the draws, rename one")
            if path != name:
                warn(f"from_jax: {path!r} is called {name!r} in the draws, as a name in the file has no slash", UserWarning)

    def compile(self) -> Density:
        """Makes the density. An evaluation is one call of a compiled function, in 64 bits."""
        jax = needs("jax", "from_jax")
        with _x64(jax):
            flat, ravel = _raveller(jax, self.example)
            _try(jax, lambda x: self.function(ravel(x)), flat)
            call = _compiled(jax, jax.value_and_grad(lambda x: self.function(ravel(x))), flat, "the gradient of log_density")
            made = Density(self.name, self._parameters(jax))
            function = gradient_function(flat.size, call)
            if self.outputs:
                made.outputs = output_variables(lambda: self.outputs(ravel(flat)), made.parameters)  # type: ignore[misc]
                of = _compiled(jax, lambda x: dict(self.outputs(ravel(x))), flat, "outputs")  # type: ignore[misc]
                report = outputs_function(flat.size, made.outputs, of)
                made.outputs_function = ctypes.cast(report, ctypes.c_void_p).value
                made.keep = report
        made.gradient = ctypes.cast(function, ctypes.c_void_p).value
        made.keep = (made.keep, function)
        return made

    def _parameters(self, jax: Any) -> list[Variable]:
        leaves = jax.tree_util.tree_flatten_with_path(self.example)[0]
        made = [Variable(_name(path), tuple(np.shape(leaf))) for path, leaf in leaves]
        bounds = bounds_by_name(self.bounds, [one.name for one in made])
        for one in made:
            one.bounds = bounds.get(one.name)
        return made


def _numbers(leaf: Any) -> np.ndarray:
    """A leaf of the example, which gives the shape of a parameter."""
    try:
        found = np.asarray(leaf)
    except Exception:  # of a class that is no array
        found = np.asarray(None)
    if found.dtype.kind not in "iuf":
        raise Error(f"from_jax: found {leaf!r} in the example, expected real numbers and arrays of them")
    return found


def _x64(jax: Any) -> Any:
    """A context in which JAX computes in 64 bits. The user's setting holds again afterwards."""
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


def _raveller(jax: Any, example: Any) -> tuple[Any, Callable[[Any], Any]]:
    from jax.flatten_util import ravel_pytree

    return ravel_pytree(jax.tree_util.tree_map(lambda leaf: jax.numpy.asarray(leaf, dtype="float64"), example))


def _try(jax: Any, function: Callable[[Any], Any], flat: Any) -> None:
    """Raises Error if JAX cannot trace the log density, or if its value is not a scalar."""
    try:
        found = jax.eval_shape(function, flat)
    except Exception as error:  # whatever the function raises
        raise _error(error, "log_density of the example") from error
    shape = getattr(found, "shape", None)
    if shape != ():
        raise Error(f"from_jax: log_density: found {f'shape {shape}' if shape else type(found).__name__}, expected a scalar")
    if not jax.numpy.issubdtype(found.dtype, jax.numpy.floating):
        raise Error(f"from_jax: log_density: found {found.dtype}, expected a real number")


def _error(error: Exception, what: str) -> Error:
    said = str(error).strip().split("\n")[0]
    return Error(f"from_jax: {what}: {type(error).__name__}: {said}")


def _compiled(jax: Any, function: Callable[[Any], Any], flat: Any, what: str) -> Callable[[np.ndarray], Any]:
    """Compiles for one thread, so that sums have the same bits in any process."""
    try:
        lowered = jax.jit(function).lower(flat)
    except Exception as error:  # of what JAX cannot differentiate
        raise _error(error, what) from error
    try:
        made = lowered.compile(compiler_options={"xla_cpu_multi_thread_eigen": False})
    except Exception:  # of a device that is no CPU
        made = lowered.compile()

    def call(x: np.ndarray) -> Any:
        with _x64(jax):
            return made(x)

    return call


def _path(path: Any) -> str:
    """The path of a leaf in the tree: "a.b.0"; theta if the tree is a single array."""
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts) or "theta"


def _name(path: Any) -> str:
    """The name of a leaf in the draws."""
    return _path(path).replace("/", "_")
