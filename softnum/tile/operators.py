"""Operator: a Tile program that is called like a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.container import Array
from softnum.formats.annotations import FormatLike, Key
from softnum.mac.products.operands import checked_operand
from softnum.runtime import _core, gateway
from softnum.tile.arithmetic import Tensor, carrier_of
from softnum.tile.evaluate import evaluate, first_nan, shapes_of
from softnum.tile.lower import lower
from softnum.tile.program import Contraction
from softnum.tile.settings import Settings
from softnum.tile.syntax import NOWHERE, Name, Number, Source
from softnum.tile.tables import Tables

if TYPE_CHECKING:
    from softnum.mac.mad import Unit

__all__ = ["Operator", "operator"]

_OPTIONS = ("fmt", "unit", "rounding", "overflow", "stochastic_bits", "key", "threads")


class Operator:
    """An operator of the Tile language; `softnum.operator` makes it.

    Attributes
    ----------
    name : str
        What errors call it.
    source : str
        The text.
    gradient_of : Operator or None
        The operator that this one is the gradient of.

    Examples
    --------
    >>> import softnum as sn
    >>> relu = sn.operator("function (X) -> (Y) { Y = X > 0 ? X : 0; }")
    >>> relu(sn.array([-1.0, 2.0], "e5m2"))
    Array([0., 2.], e5m2)
    >>> relu.inputs, relu.outputs, relu.is_elementwise
    ((('X', None),), ('Y',), True)
    """

    def __init__(self, text: str, name: str) -> None:
        source = Source(text, name)
        try:
            self._program, self._stated_gradient, self._scope = lower(source)
        except RecursionError:
            raise source.error(
                NOWHERE, "an expression or a branch is nested too deeply; assign parts of it to tensors of their own"
            ) from None
        self.name: str = name
        self.source: str = text
        self.gradient_of: Operator | None = None

    @classmethod
    def _of(cls, program, source: str, parent: Operator) -> Operator:
        new = cls.__new__(cls)
        new._program, new.gradient_of = program, parent
        new.name, new.source = f"gradient of {parent.name}", source
        return new

    @property
    def inputs(self) -> tuple[Any, ...]:
        """Each input's name and its sizes (names or integers), None where it takes any shape."""
        shown = {Name: lambda s: s.name, Number: lambda s: int(s.value)}
        return tuple(
            (name, None if sizes is None else tuple(shown[type(s)](s) for s in sizes))
            for name, sizes in self._program.inputs
        )

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs' names."""
        return self._program.outputs

    @cached_property
    def contractions(self) -> tuple[str, ...]:
        """The tensors that are summed on a unit, or brought together otherwise, in the program's order."""
        return tuple(dict.fromkeys(step.base for step in self._program.steps if isinstance(step, Contraction)))

    @cached_property
    def is_elementwise(self) -> bool:
        """Whether each element of an output depends on the inputs' elements at its own place alone."""
        whole = any(isinstance(s, Contraction) or s.function in ("reduce_like", "scatter") for s in self._program.steps)
        tables = {s.arguments[0] for s in self._program.steps if not whole and s.function == "gather"}
        vectors = {s.name for s in self._program.steps if not whole and s.function == "vector"}
        return not whole and tables <= vectors

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self._program)

    # -- evaluation ----------------------------------------------------------------------------------------------------
    def __call__(
        self,
        *inputs: ArrayLike,
        fmt: FormatLike | Mapping[str, FormatLike] | None = None,
        unit: Unit | Mapping[str, Unit] | None = None,
        rounding: str | Mapping[str, str] = "nearest_even",
        overflow: str | Mapping[str, str] | None = None,
        stochastic_bits: int | Mapping[str, int] = 32,
        key: Key | None = None,
        threads: int | None = None,
        **unknown: Any,
    ) -> Any:
        """The outputs, with every operation rounded to the format of its tensor and every sum on its unit.

        Parameters
        ----------
        *inputs : Array, or array_like of float32 or float64, or CUDA arrays
            In the order of the source. Values of their tensors' formats (checked). What lies on a GPU is computed
            there, and so do the results; numbers may stand beside it, arrays of the host may not.
        fmt : format or str, or dict, optional
            One format for all tensors, or by tensor: names, "d*" for every gradient, "*" for all others. Arrays know
            theirs; if all have one and "*" is not stated, it is that one. A sum has the format of its
            unit's result unless one is stated for it by name.
        unit : Unit, or dict, optional
            What sums are computed on: `MadUnit` and its like; by tensor as fmt.
        rounding, overflow, stochastic_bits : as in `softnum.add`, or dicts by tensor
            Of the roundings outside the units.
        key : int, (int, int) or Stream, optional
            Seed, or (seed, stream); needed iff something rounds stochastically, and not looked at otherwise.
        threads : int, optional
            Of the sums; the result does not depend on it.

        Returns
        -------
        Array if an input is one, else ndarray (float32 if it holds the format, else float64, else an Array)
            Of CUDA arrays an array of their library. A tuple of them if there are several outputs.

        Raises
        ------
        ValueError
            If a shape, a value or an option does not fit; what happens inside shows its place in the source.
        TypeError
            If an option is none of these: there is no ``out=``, as results are new arrays. Of CUDA arrays, if a
            statement has no kernel, as those in wide custom formats.

        Examples
        --------
        >>> import numpy as np, softnum as sn
        >>> text = "function (A[M, L], B[L, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }"
        >>> product, x = sn.operator(text), np.full((1, 40), 1, np.float32)
        >>> product(x, x.T, fmt="e5m2", unit=sn.MadUnit("e6m3", operand="e5m2"))
        array([[16.]], dtype=float32)
        """
        for option in unknown:
            raise TypeError(
                f"{self.name} takes no {option}=; results are new arrays, and the options are {', '.join(_OPTIONS)}"
            )
        if any(map(gateway.is_device_array, inputs)):
            return gateway.on_device(
                "operator", self, *inputs, fmt=fmt, unit=unit, rounding=rounding, overflow=overflow,
                stochastic_bits=stochastic_bits, key=key, threads=threads,
            )  # fmt: skip
        settings = Settings(self._program, inputs, fmt, unit, rounding, overflow, stochastic_bits)
        key = key if settings.stochastic else None
        with _core.PlainEnvironment():
            results = self.evaluated(
                inputs, lambda x, name: self._taken(x, name, settings),
                lambda *program_and_inputs: evaluate(*program_and_inputs, settings, key, threads, self._tables),
            )  # fmt: skip
        as_array = any(isinstance(x, Array) for x in inputs)
        delivered = tuple(tensor.array if as_array else tensor.values for tensor in results)
        return delivered[0] if len(delivered) == 1 else delivered

    def first_nan(
        self,
        *inputs: ArrayLike,
        fmt: FormatLike | Mapping[str, FormatLike] | None = None,
        unit: Unit | Mapping[str, Unit] | None = None,
        rounding: str | Mapping[str, str] = "nearest_even",
        overflow: str | Mapping[str, str] | None = None,
        stochastic_bits: int | Mapping[str, int] = 32,
        key: Key | None = None,
        threads: int | None = None,
    ) -> Any:
        """Where the first NaN arises of tensors that have none, in a call with these arguments.

        Parameters
        ----------
        As of the call.

        Returns
        -------
        TileError or None
            An error that shows the place in the source, not raised.

        Examples
        --------
        >>> import softnum as sn
        >>> op = sn.operator("function (X) -> (Y) { T = X - 2; Y = log(T); }")
        >>> print(op.first_nan(sn.array([3.0, 1.5], "binary16")))
        tile, line 1, column 38: Y[1] is NaN where T is -0.5
            function (X) -> (Y) { T = X - 2; Y = log(T); }
                                                 ^^^
        """
        if any(map(gateway.is_device_array, inputs)):
            gateway.refuse_device(f"{self.name}.first_nan")
        settings = Settings(self._program, inputs, fmt, unit, rounding, overflow, stochastic_bits)
        with _core.PlainEnvironment():
            tensors, sizes = self._tensors(inputs, lambda x, name: self._taken(x, name, settings))
            return first_nan(self._program, tensors, sizes, settings, key if settings.stochastic else None, threads)

    def _tensors(self, inputs, take) -> tuple[dict[str, Tensor], dict[str, int]]:
        """The inputs by name, as take(input, name) has checked them, and the sizes that their shapes give."""
        program = self._program
        if len(inputs) != len(program.inputs):
            names = ", ".join(name for name, _ in program.inputs)
            raise TypeError(f"{self.name} takes {len(program.inputs)} inputs ({names}), got {len(inputs)}")
        tensors = {name: take(x, name) for x, (name, _) in zip(inputs, program.inputs, strict=True)}
        return tensors, self._sizes(tensors)

    def evaluated(self, inputs: Sequence[Any], take: Callable[..., Any], evaluate: Callable[..., Any]) -> list[Any]:
        """The outputs, wherever they are made: tensors of take(input, name), by evaluate(program, tensors, sizes)."""
        program, (tensors, sizes) = self._program, self._tensors(inputs, take)
        if self.gradient_of is None:
            return evaluate(program, tensors, sizes)
        forward = self.gradient_of._program
        inputs = {name: tensors[name] for name, _ in forward.inputs}
        for name, shape in shapes_of(forward, inputs, sizes, self.gradient_of._tables).items():
            given, gradient = tensors[name].shape, tensors[f"d{name}"].shape
            if given != shape:
                raise ValueError(f"{self.name}: {name} has shape {given}, and of these inputs it has {shape}")
            if gradient != shape:
                raise ValueError(f"{self.name}: d{name} has shape {gradient}, {name} has {shape}")
        results = evaluate(program, tensors, sizes)
        for name, result in zip(program.outputs, results, strict=True):
            shape = tensors[name[1:]].shape
            if result.shape != shape:
                at = next(step.at for step in program.steps if step.name == name)
                raise program.source.error(
                    at, f"{name} has shape {result.shape}, {name[1:]} has {shape}: a gradient has the shape of its "
                    "input (reduce_like sums one to it)",
                )  # fmt: skip
        return results

    def _taken(self, x, name: str, settings: Settings) -> Tensor:
        """An input, checked to be of its format."""
        stated = settings.stated_format(name)
        if isinstance(x, Array):
            if stated is not None and stated != x.format:
                raise ValueError(f"{self.name}: {name} is an Array of {x.format}, and its format is {stated}")
            return Tensor.of(x)
        fmt = settings.format_given(name)
        if not isinstance(x, np.ndarray):
            x = np.asarray(x, np.float64)
        checked = checked_operand(x, fmt, name, self.name)
        if isinstance(checked, Array):
            return Tensor.of(checked)
        dtype = carrier_of(fmt)
        if dtype is None:
            from softnum.arrays.conversion import encode

            return Tensor(fmt, codes=encode(checked, fmt))
        return Tensor(fmt, values=checked.astype(dtype, copy=False))

    def _sizes(self, tensors: dict[str, Tensor]) -> dict[str, int]:
        sizes, origin = {}, {}
        for name, stated in self._program.inputs:
            shape = tensors[name].shape
            if stated is None:
                continue
            if len(shape) != len(stated):
                wanted = ", ".join(s.name if isinstance(s, Name) else str(s.value) for s in stated)
                raise ValueError(f"{self.name}: {name}[{wanted}] has {len(stated)} dimensions, got shape {shape}")
            for size, n in zip(stated, shape, strict=True):
                if isinstance(size, Number):
                    if n != size.value:
                        raise ValueError(f"{self.name}: {name} has {size.value} in its sizes, got shape {shape}")
                elif sizes.setdefault(size.name, n) != n:
                    raise ValueError(
                        f"{self.name}: {size.name} is {sizes[size.name]} in {origin[size.name]} and {n} in {name}"
                    )
                else:
                    origin.setdefault(size.name, name)
        return sizes

    # -- gradients -----------------------------------------------------------------------------------------------------
    @cached_property
    def gradient(self) -> Operator:
        """The gradients, as an Operator: from the inputs, the outputs and their gradients to those of the inputs.

        The gradient of X is called dX. The source is Tile: what the operator's own ``gradient { }`` states, and for the
        other inputs what was derived. It begins with the operator's steps as far as they are needed. Inputs that no
        output depends on smoothly (places in a table) have no gradient among its outputs.

        Examples
        --------
        >>> import softnum as sn
        >>> print(sn.operator("function (X) -> (Y) { Y = tanh(X); }").gradient.source)
        function (X, Y, dY) -> (dX) {
            dX_1 = Y * Y;
            dX_2 = 1 - dX_1;
            dX = dY * dX_2;
        }
        """
        from softnum.tile.gradients import differentiate
        from softnum.tile.text import text_of

        if self.gradient_of is not None:
            raise ValueError(f"{self.name} is a gradient; softnum.operator(its source) can be differentiated again")
        program = differentiate(self._program, self._stated_gradient, self._scope)
        return Operator._of(program, text_of(program), self)

    def backward(self, inputs: Sequence[Any], outputs: Any, gradients: Any, **options: Any) -> tuple[Any, ...]:
        """The gradients of the inputs, given those of the outputs.

        Parameters
        ----------
        inputs, outputs : sequences of arrays
            As the operator was called with, and as it answered.
        gradients : sequence of arrays
            Of the outputs, in the formats of their gradients: of dY for an output Y.
        **options
            Those of the call: with the same key the intermediate tensors are the same bits again. Formats, units and
            roundings of gradients are stated by name ("dX") or for all of them ("d*"); a gradient that has none of its
            own takes that of "*".

        Returns
        -------
        tuple of arrays, one for each input
            None where there is no gradient.

        Raises
        ------
        ValueError
            As the call, and if an output or its gradient has not the shape that these inputs give the output.

        Examples
        --------
        >>> import softnum as sn
        >>> square = sn.operator("function (X) -> (Y) { Y = X * X; }")
        >>> x, one = sn.array([1.5, -2.0], "e5m2"), sn.array([1.0, 1.0], "e5m2")
        >>> square.backward([x], [square(x)], [one])
        (Array([ 3., -4.], e5m2),)
        """
        for what, given in (("inputs", inputs), ("outputs", outputs), ("gradients", gradients)):
            names = [name for name, _ in self._program.inputs] if what == "inputs" else self.outputs
            if isinstance(given, (Array, np.ndarray)) or gateway.is_device_array(given) or len(given) != len(names):
                raise TypeError(f"{self.name}.backward: {what} is a sequence of {len(names)} ({', '.join(names)})")
        gradient = self.gradient
        found = gradient(*inputs, *outputs, *gradients, **options) if gradient.outputs else ()
        found = found if isinstance(found, tuple) else (found,)
        named = dict(zip(gradient.outputs, found, strict=True))
        return tuple(named.get(f"d{name}") for name, _ in self._program.inputs)

    def __repr__(self) -> str:
        return f"<Operator {self.name}: ({', '.join(n for n, _ in self.inputs)}) -> ({', '.join(self.outputs)})>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and (self.source, self.name) == (other.source, other.name)

    def __hash__(self) -> int:
        return hash((self.source, self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.gradient_of is not None:
            return getattr, (self.gradient_of, "gradient")
        return Operator, (self.source, self.name)


def operator(text: str | Path, name: str | None = None) -> Operator:
    """An operator, written in Tile: the text, or the path of a file of it.

    Parameters
    ----------
    text : str or Path
        The program; a str without a line end or a brace that ends in ``.tile``, or a Path, names a file.
    name : str, optional
        What errors call it; default the file's name, or "tile".

    Returns
    -------
    Operator

    Raises
    ------
    TileError
        If the text is no program: a ValueError with the line, the column and a caret.
    OSError
        If the file cannot be read.
    ImportError
        If lark is missing: ``pip install 'softnum[custom]'``.

    Notes
    -----
    The language is Tile, as PlaidML has it, with if, switch and formats; ``docs/reference/tile.md`` defines it.

    Examples
    --------
    >>> import softnum as sn
    >>> hard = sn.operator('''function (X) -> (Y) {
    ...     if (X > 1) { Y = 1; } else if (X < -1) { Y = -1; } else { Y = X; }
    ... }''', name="hard_tanh")
    >>> hard(sn.array([-3.0, 0.25, 2.0], "e5m2"))
    Array([-1.  ,  0.25,  1.  ], e5m2)
    >>> sn.operator("function (X) -> (Y) { Y = tahn(X); }")
    Traceback (most recent call last):
        ...
    softnum.tile.syntax.TileError: tile, line 1, column 27: there is no function 'tahn'; did you mean 'tan' or 'tanh'?
        function (X) -> (Y) { Y = tahn(X); }
                                  ^^^^
    """
    if isinstance(text, Path) or (isinstance(text, str) and text.endswith(".tile") and not set(text) & set("\n{}")):
        path = Path(text)
        return Operator(path.read_text(encoding="utf-8"), name or path.name)
    if not isinstance(text, str):
        raise TypeError(f"operator takes the text of a program, or a path, got {type(text).__name__}")
    return Operator(text, name or "tile")
