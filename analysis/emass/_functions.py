"""Densities by functions of Python or numba (Model.from_function)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ._density import Density, Variable, gradient_function, output_variables, outputs_function, value_function, what_is
from ._errors import Error, needs

__all__ = ["FunctionSource"]


def _is_jitted(function: Any) -> bool:
    return hasattr(function, "py_func") and hasattr(function, "inspect_llvm")


@dataclasses.dataclass
class FunctionSource:
    """The arguments of from_function. cloudpickle sends them to other ranks."""

    log_density: Callable[..., Any]
    gradient: Callable[..., Any] | bool | None
    parameters: list[Variable]
    together: bool  # one array holds all parameters: dim was given
    outputs: Callable[..., Mapping[str, Any]] | None
    name: str = "function"
    compiling: ClassVar[str] = ""  # numba takes a second or two

    @property
    def size(self) -> int:
        """The number of scalars in a position."""
        return sum(one.size for one in self.parameters)

    def compile(self) -> Density:
        """Makes the density from functions of C."""
        made = Density(self.name, self.parameters)
        if self.outputs:
            made.outputs, evaluate = self._outputs()
            call = outputs_function(self.size, made.outputs, evaluate)
            made.outputs_function, made.keep = _address(call), call
        functions = [self.log_density, *([self.gradient] if callable(self.gradient) else [])]
        compiled = [_is_jitted(one) for one in functions]
        if hasattr(self.log_density, "address"):
            made.gradient, made.keep = self.log_density.address, (made.keep, self.log_density)
        elif all(compiled):
            self._by_numba(made)
        else:
            self._by_python(made)
        return made

    def _parts(self) -> list[tuple[int, int, tuple[int, ...]]]:
        ends = np.cumsum([one.size for one in self.parameters])
        return [(int(end) - one.size, int(end), one.shape) for one, end in zip(self.parameters, ends, strict=True)]

    def arguments(self, x: np.ndarray) -> list[Any]:
        """x (size,) as the arguments of the functions."""
        if self.together:
            return [x]
        return [float(x[a]) if shape == () else x[a:b].reshape(shape) for a, b, shape in self._parts()]

    def _flat(self, gradient: Any) -> Any:
        if self.together:
            return gradient
        parts = gradient
        if isinstance(gradient, Mapping):
            names = [one.name for one in self.parameters]
            if set(gradient) != set(names):
                raise ValueError(f"the gradient: found the names {', '.join(map(str, gradient))}, expected {', '.join(names)}")
            parts = [gradient[name] for name in names]
        return np.concatenate([np.ravel(part) for part in parts])

    def _by_python(self, made: Density) -> None:
        density, gradient = self.log_density, self.gradient

        def both(x: np.ndarray) -> tuple[Any, Any]:
            found = density(*self.arguments(x))
            try:
                value, slope = found
            except (TypeError, ValueError):
                raise TypeError(f"gradient=True: found {what_is(found)}, expected (log density, gradient)") from None
            return value, self._flat(slope)

        def each(x: np.ndarray) -> tuple[Any, Any]:
            value = density(*self.arguments(x.copy()))  # which may change its arguments
            return value, self._flat(gradient(*self.arguments(x)))  # type: ignore[operator]

        if gradient:
            call = gradient_function(self.size, each if callable(gradient) else both)
            made.gradient = _address(call)
        else:
            call = value_function(self.size, lambda x: density(*self.arguments(x)))
            made.value = _address(call)
        made.keep = (made.keep, call)

    def _by_numba(self, made: Density) -> None:
        """A C function that calls the compiled functions without Python and its lock."""
        numba = needs("numba", "from_function with numba")
        arguments = ", ".join(
            "x" if self.together else f"x[{a}]" if shape == () else f"x[{a}:{b}].reshape({shape})"
            for a, b, shape in self._parts()
        )
        copy = f"        x = carray(theta, ({self.size},)).copy()"  # which the functions may change
        lines = ["def call(state, theta, out, slope):", "    try:", copy]
        if not self.gradient:
            lines = ["def call(state, theta):", "    try:", copy]
            lines += [f"        return density({arguments})", "    except Exception:", "        return nan"]
            kinds = "double(voidptr, CPointer(double))"
        else:
            if callable(self.gradient):
                lines += [f"        value = density({arguments})", copy, f"        g = gradient({arguments})"]
            else:
                lines += [f"        value, g = density({arguments})"]
            lines += ["        out[0] = value", f"        to = carray(slope, ({self.size},))", *self._store()]
            lines += ["    except Exception:", "        return 1", "    return 0"]
            kinds = "int32(voidptr, CPointer(double), CPointer(double), CPointer(double))"
        scope = {"carray": numba.carray, "density": self.log_density, "gradient": self.gradient, "nan": float("nan")}
        exec("\n".join(lines), scope)  # the text is made of numbers and the names above
        types = {"voidptr": numba.types.voidptr, "CPointer": numba.types.CPointer, "double": numba.types.double}
        try:
            call = numba.cfunc(eval(kinds, types | {"int32": numba.types.int32}))(scope["call"])
        except numba.core.errors.NumbaError as error:
            said = (line for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in "))
            first = next(said, type(error).__name__)
            raise Error(f"{self.name}: numba cannot compile it: {first}") from error
        for signature in getattr(self.log_density, "nopython_signatures", ()):
            if getattr(signature.return_type, "types", (signature.return_type,))[0] == numba.types.boolean:
                raise Error(f"{self.name}: the log density: found bool, expected one real number")
        if self.gradient:
            made.gradient = call.address
        else:
            made.value = call.address
        made.keep = (made.keep, call)

    def _store(self) -> list[str]:
        if self.together:
            return ["        to[:] = g"]
        return [
            f"        to[{a}] = g[{i}]" if shape == () else f"        to[{a}:{b}] = g[{i}].ravel()"
            for i, (a, b, shape) in enumerate(self._parts())
        ]

    def _outputs(self) -> tuple[list[Variable], Callable[[np.ndarray], Mapping[str, Any]]]:
        def evaluate(x: np.ndarray) -> Mapping[str, Any]:
            return self.outputs(*self.arguments(x))  # type: ignore[misc]

        return output_variables(lambda: evaluate(Density(self.name, self.parameters).point(1)), self.parameters), evaluate


def _address(function: Any) -> int:
    import ctypes

    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    return address
