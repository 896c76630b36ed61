"""A log density that emass calls by address: its parameters, outputs and functions."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import numbers
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from . import _library
from ._errors import Error

__all__ = [
    "LOG_LIKELIHOOD",
    "POSTERIOR",
    "Bounds",
    "Density",
    "Variable",
    "bounds_by_name",
    "gradient_function",
    "named",
    "outputs_function",
    "what_is",
]

POSTERIOR, LOG_LIKELIHOOD = 0, 1  # em_report_group
_FREE, _LOWER, _UPPER, _BETWEEN, _ORDERED, _SIMPLEX = range(6)  # em_constraint

# (lower, upper), either of which may be None; or "ordered", "simplex"
Bounds = tuple[float | None, float | None] | str | None


@dataclasses.dataclass
class Variable:
    """An array of the parameters or the outputs."""

    name: str
    shape: tuple[int, ...] = ()
    axes: tuple[str | None, ...] | None = None
    bounds: Bounds = None
    group: int = POSTERIOR
    storage: int = 0  # em_storage: real

    @property
    def size(self) -> int:
        """The number of scalars in the array."""
        return int(np.prod(self.shape, dtype=np.int64))

    def constraint(self) -> tuple[int, float, float]:
        """The bounds as em_constraint (include/emass), lower and upper.

        >>> Variable("sigma", bounds=(0, None)).constraint()
        (1, 0.0, 0.0)
        """
        words = {"ordered": _ORDERED, "simplex": _SIMPLEX}
        if self.bounds is None:
            return _FREE, 0.0, 0.0
        if isinstance(self.bounds, str):
            if self.bounds not in words:
                raise Error(f"bounds of {self.name}: found {self.bounds!r}, expected a pair, 'ordered' or 'simplex'")
            if not self.shape:
                raise Error(f"bounds of {self.name}: found {self.bounds!r} for one number, expected an array")
            return words[self.bounds], 0.0, 0.0
        try:
            lower, upper = (None if end in (None, free) else float(end) for end, free in zip(self.bounds, (-np.inf, np.inf), strict=True))
        except (TypeError, ValueError):
            raise Error(f"bounds of {self.name}: found {self.bounds!r}, expected a pair, 'ordered' or 'simplex'") from None
        ends = lower or 0.0, upper or 0.0
        if not np.isfinite(ends).all():
            raise Error(f"bounds of {self.name}: found {self.bounds!r}, expected numbers, or None for no bound")
        if None not in (lower, upper) and not ends[0] < ends[1]:
            raise Error(f"bounds of {self.name}: found {self.bounds!r}, expected a lower bound below the upper one")
        kind = _BETWEEN if None not in (lower, upper) else _LOWER if lower is not None else _UPPER
        return (_FREE if lower is upper is None else kind), *ends

    def inside(self, free: np.ndarray) -> np.ndarray:
        """Maps free numbers to a value within the bounds."""
        kind, lower, upper = self.constraint()
        if kind == _LOWER:
            return lower + np.exp(free)
        if kind == _UPPER:
            return upper - np.exp(free)
        if kind == _BETWEEN:
            return lower + (upper - lower) / (1 + np.exp(-free))
        if kind == _ORDERED:
            return np.cumsum(np.exp(free.reshape(self.shape)), axis=-1).ravel()
        if kind == _SIMPLEX:
            weight = np.exp(free.reshape(self.shape))
            return (weight / weight.sum(-1, keepdims=True)).ravel()
        return free


def named(
    dim: int | None, names: Sequence[str] | None, shapes: Mapping[str, Any] | None, bounds: Mapping[str, Bounds] | None
) -> list[Variable]:
    """The parameters of from_function, which are given by one of dim, names and shapes.

    >>> [v.name for v in named(None, ["mu", "tau"], None, {"tau": (0, None)})]
    ['mu', 'tau']
    """
    if sum(given is not None for given in (dim, names, shapes)) != 1:
        raise Error("from_function: expected one of dim, names and shapes")
    if dim is not None:
        sizes: dict[str, Any] = {"theta": (dim,)}
    elif names is not None:
        sizes = dict.fromkeys(_different(names), ())
    else:
        sizes = dict(shapes or {})
    found = bounds_by_name(bounds, sizes)
    return [Variable(name, _shape_of(name, shape), bounds=found.get(name)) for name, shape in sizes.items()]


def bounds_by_name(bounds: Mapping[str, Bounds] | None, names: Collection[str]) -> Mapping[str, Bounds]:
    """The bounds of the parameters of these names, a mapping."""
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise Error(f"bounds: found {bounds!r}, expected a mapping such as {{{next(iter(names))!r}: (0, None)}}")
    for name in bounds:
        if name not in names:
            raise Error(f"bounds: found {name!r}, expected a name of {', '.join(names)}")
    return bounds


def _different(names: Sequence[str]) -> Sequence[str]:
    if isinstance(names, str):
        raise Error(f"from_function: names: found the text {names!r}, expected a list of names")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise Error(f"from_function: names: found {name!r} again, expected a different name for each parameter")
    return names


def _shape_of(name: str, given: Any) -> tuple[int, ...]:
    shape = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not all(isinstance(one, numbers.Integral) and one >= 1 for one in shape):
        raise Error(f"from_function: shape of {name}: found {given!r}, expected integers from 1")
    return tuple(int(one) for one in shape)


@dataclasses.dataclass
class Density:
    """Addresses of the functions of a log density, with its parameters and outputs. `keep` owns what they point to."""

    name: str
    parameters: list[Variable] = dataclasses.field(default_factory=list)
    dim: int = 0  # without parameters
    unconstrained: list[str] | None = None
    outputs: list[Variable] = dataclasses.field(default_factory=list)
    labels: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    data: list[tuple[str, Variable, np.ndarray]] = dataclasses.field(default_factory=list)  # group, what, values
    gradient: int | None = None
    value: int | None = None
    outputs_function: int | None = None
    keep: Any = None
    is_current: Callable[[], bool] = lambda: True  # whether the model is still as it was compiled

    @property
    def size(self) -> int:
        """The number of scalars in a position."""
        return self.dim or sum(one.size for one in self.parameters)

    def _element(self, i: int) -> str:
        """The name of number i of a position, such as theta[0,2]."""
        for one in self.parameters:
            if i < one.size:
                at = ",".join(str(k) for k in np.unravel_index(i, one.shape)) if one.shape else ""
                return f"{one.name}[{at}]" if at else one.name
            i -= one.size
        return self.unconstrained[i] if self.unconstrained else f"theta[{i}]"

    def evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The log density and its gradient at x (size,). A failure gives NaN; without a gradient it is NaN."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        with _library.raising():
            return self._evaluate(x)

    def _evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        out, slope = ctypes.c_double(np.nan), np.full(self.size, np.nan)
        if self.gradient:
            status = _library.GRADIENT(self.gradient)(None, x.ctypes.data, ctypes.addressof(out), slope.ctypes.data)
            return (out.value if status == 0 else float("nan")), slope
        return _library.VALUE(self.value)(None, x.ctypes.data), slope

    def point(self, k: int, scale: float = 1.0) -> np.ndarray:
        """A position within the bounds, the same for the same k."""
        free = np.random.default_rng(k).uniform(-scale, scale, self.size)
        if not self.parameters:
            return free
        ends = np.cumsum([one.size for one in self.parameters])[:-1]
        return np.concatenate([one.inside(part) for one, part in zip(self.parameters, np.split(free, ends), strict=True)])

    def fingerprint(self) -> int:
        """A hash of the values of the function at two positions, in six digits. A run resumes only if it is equal."""
        text = " ".join(f"{self.evaluate(self.point(k))[0]:.6g}" for k in (1, 2))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") or 1

    def check(self, points: int = 5, numbers: int = 20) -> str:
        """Compares gradients with central differences, and measures the time of an evaluation."""
        for one in [*self.parameters, *self.outputs]:
            if one.name in ("chain", "draw"):
                raise Error(f"{self.name}: found {one.name}, the name of a coordinate of the draws, as that of a variable: rename it")
        worst, tried, failed, why, x = 0.0, 0, 0, "", self.point(1)
        end = time.perf_counter() + 1
        for k in range(1, 101):
            if tried >= points and time.perf_counter() > end:
                break
            at = self.point(k)
            _library.fail_with(1, "")
            value, slope = self.evaluate(at)
            is_defined = np.isfinite(value) and (self.value or np.isfinite(slope).all())
            why = why or ("" if is_defined else _library.last_error() or _what_is_not_finite(value))
            if not is_defined:
                failed += 1
                continue
            x = at
            tried += 1
            for i in [] if self.value or tried > points else np.random.default_rng(k).permutation(self.size)[:numbers]:
                worst = max(worst, self._compare(x, int(i), float(slope[i])))
        if tried == 0:
            raise Error(f"{self.name}: found no position within 1 of the origin where the log density is finite: {why}", 1)
        start = time.perf_counter()
        rounds = 0
        while time.perf_counter() - start < 0.1:
            self.evaluate(x)
            rounds += 1
        micro = 1e6 * (time.perf_counter() - start) / rounds
        agrees = "no gradient: central differences" if self.value else f"gradients agree with central differences within {worst:.1e}"
        lost = f"; the log density is not finite at {failed} of {tried + failed} positions, first: {why}" if failed else ""
        return f"{self.name}: {self.size} parameter{'s' * (self.size > 1)}; {agrees}, at {min(tried, points)} positions; {micro:.3g} us an evaluation{lost}"

    def _compare(self, x: np.ndarray, i: int, slope: float) -> float:
        moved, step = x.copy(), 1e-5 * max(1.0, abs(x[i]))
        ends = []
        for sign in (1, -1):
            moved[i] = x[i] + sign * step
            ends.append(self.evaluate(moved)[0])
        difference = (ends[0] - ends[1]) / (2 * step)
        off = abs(difference - slope) / max(1.0, abs(slope), abs(difference))
        if off > 1e-3:
            raise Error(f"{self.name}: the derivative by {self._element(i)} is {slope:.6g}, by central differences {difference:.6g}", 1)
        return off


def _what_is_not_finite(value: float) -> str:
    return "the gradient is not finite" if np.isfinite(value) else f"the log density is {value:g}"


# ---------------------------------------------------------------- functions of Python


def _said(error: BaseException) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    is_ours = trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("emass.")
    where = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace and not is_ours else ""
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")[:160] + where


def _failed(error: BaseException) -> int:
    """The status of a rejection, with the text of an exception. An exit or an interrupt ends the run too."""
    if not isinstance(error, Exception):
        _library.end_by(error)
    return _library.fail_with(1, _said(error))


def _array(address: int, n: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_double * n).from_address(address))


def _position(address: int, n: int) -> np.ndarray:
    """A copy of the position, so that a function which changes its argument does not move the chain."""
    return _array(address, n).copy()


def what_is(found: Any) -> str:
    """Describes a value that a function has returned, for an error."""
    if isinstance(found, (tuple, list)):
        return f"{len(found)} values"
    if found is None:
        return "no value"
    if np.ndim(found):
        return f"an array of the shape {np.shape(found)}"
    return "one number" if _is_number(found) else type(found).__name__


def _is_number(found: Any) -> bool:
    kind = getattr(getattr(found, "dtype", None), "kind", "")
    return np.ndim(found) == 0 and kind not in ("c", "b") and not isinstance(found, bool) and hasattr(found, "__float__")


def _number(found: Any) -> float:
    if not isinstance(found, float) and not _is_number(found):
        raise TypeError(f"the log density: found {what_is(found)}, expected one real number")
    return float(found)


def gradient_function(n: int, evaluate: Callable[[np.ndarray], tuple[Any, Any]]) -> Any:
    """A C function of a Python one, x (n,) -> (log density, gradient (n,)). An exception is a
    rejection, with its text."""

    def call(state: Any, theta: int, log_density: int, gradient: int) -> int:
        try:
            value, slope = evaluate(_position(theta, n))
            slope = np.ravel(slope)
            if np.iscomplexobj(slope):
                raise TypeError("the gradient: found complex numbers, expected real ones")
            if slope.size != n:
                raise ValueError(f"the gradient has {slope.size} numbers, expected {n}")
            ctypes.c_double.from_address(log_density).value = _number(value)
            _array(gradient, n)[:] = slope
        except BaseException as error:  # whatever the function of the user raises
            return _failed(error)
        return 0

    return _library.GRADIENT(call)


def value_function(n: int, evaluate: Callable[[np.ndarray], Any]) -> Any:
    """A C function of a Python one, x (n,) -> log density. An exception is a rejection, with its text."""

    def call(state: Any, theta: int) -> float:
        try:
            return _number(evaluate(_position(theta, n)))
        except BaseException as error:  # likewise
            _failed(error)
            return float("nan")

    return _library.VALUE(call)


def outputs_function(n: int, outputs: Sequence[Variable], evaluate: Callable[[np.ndarray], Mapping[str, Any]]) -> Any:
    """A C function of a Python one, x (n,) -> {name: array of its shape}."""
    width = sum(one.size for one in outputs)

    def call(state: Any, theta: int, out: int) -> int:
        try:
            values = evaluate(_position(theta, n))
            _array(out, width)[:] = np.concatenate([np.ravel(np.asarray(values[one.name])) for one in outputs])
        except BaseException as error:  # likewise
            return _failed(error)
        return 0

    return _library.OUTPUTS(call)


def output_variables(example: Callable[[], Mapping[str, Any]], parameters: Sequence[Variable]) -> list[Variable]:
    """The variables of the outputs, with the names and shapes of an example, beside the parameters."""
    try:
        values = example()
    except Exception as error:  # likewise
        raise Error(f"outputs: {_said(error)}") from error
    if not isinstance(values, Mapping):
        raise Error(f"outputs: found {type(values).__name__}, expected a mapping of names to numbers and arrays")
    unnamed = [name for name in values if not isinstance(name, str)]
    if unnamed:
        raise Error(f"outputs: found the name {unnamed[0]!r}, expected text")
    taken = [one.name for one in parameters if one.name in values]
    if taken:
        raise Error(f"outputs: found {taken[0]!r}, the name of a parameter, expected another name")
    return [Variable(name, tuple(np.shape(value))) for name, value in values.items()]
