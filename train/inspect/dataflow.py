"""What an iteration reads and writes: every value that its backend makes, where it is made, and where it is read.

`Flow` listens to a run (`softnum.train.engine.watch`) and follows each array from the operation that makes it to those
that read it. Three rules make an accelerator's traffic of an emulator's calls:

- moving is free: who reads the transposed, unfolded, joined or cut form of a value reads the value;
- rounding happens where a value is made: it is written in each format in which another operation reads it, and in no
  other; but a saved activation is written in its own format and rounded where it is read;
- element-by-element steps of one layer that follow each other are one operation, whose inner results stay inside.

A pattern N:M of weights is chosen where they are rounded: in the update that makes them, whose master copy passes
through anyway. What is kept of the working copy is stored packed, each number with its index in the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.mac.products.unfold import shape_of
from softnum.train.designs.design import SAVED, RoleRounding
from softnum.train.designs.objects import describe_format
from softnum.train.engine.watch import BINARY64, CARRIER, EXACT, Event, is_array
from softnum.train.recipes import Scaled

__all__ = ["Flow", "Group", "Value"]

_FLOPS = {"fma": 2, "axpy": 2}
_ROUND = {"quantize", "quantize_blocks", "quantize_flat", "quantize_scaled", "unchanged"}
_PRODUCT = {"convolve", "matmul", "matmul_scaled"}
_CONSTANT = {"block_ones", "constant", "ones", "zeros"}
_NOTHING = {"all_finite", "argmax"}
#: methods whose result is chosen element by element: one operation an element; what they are called
_SELECT = {
    "choose": "select", "kept": "dropout", "kept_of_groups": "prune", "kept_of_tensor": "prune",
    "largest": "max_pool", "positive_part": "relu", "prune": "prune", "where_equal": "max_pool",
    "sign": "sign", "trusted": "trust", "where_positive": "relu",
}  # fmt: skip


@dataclass(eq=False)
class Value:
    """Numbers that are made at one place, in one format.

    Attributes
    ----------
    layer, name : str
        Whose they are; the operation that made them.
    elements : int
    bits : int or float
        Of an element, of a block format with its share of the scale of a full block; of packed ones, of each that is
        kept or not.
    format : str
    maker : int or None
        Number of the group that made them; None of what was there before the iteration.
    owner : tuple
        (class, parameter's or buffer's index, name) of what outlives its operation as a weight, gradient or state.
    copy_of : int or None
        The parameter that it is a working copy of.
    data : bool
        Whether it is a sample's.
    along : int or None
        The axis of its blocks.
    source : Value or None
        What it is a rounding of.
    saved : bool
        Whether it is an activation that is kept as it is, and rounded again where it is read.
    pattern : (Fraction, int) or None
        Of weights that a pattern prunes, and of its mask: which part is kept, and bits of the index in a group.
    readers : set of int
        Groups, the maker left out.
    """

    layer: str
    name: str
    elements: int
    bits: int | float
    format: str
    maker: int | None
    owner: tuple | None = None
    copy_of: int | None = None
    data: bool = False
    along: int | None = None
    source: Value | None = None
    saved: bool = False
    pattern: tuple[Fraction, int] | None = None
    readers: set[int] = field(default_factory=set)
    rounded: dict = field(default_factory=dict)
    tested: set[int] = field(default_factory=set)  # groups that read no more than whether it is above zero

    def size(self, elements: int | None = None) -> int:
        """Bytes of so many elements; of all of them by default."""
        return -int(-(self.elements if elements is None else min(elements, self.elements)) * self.bits // 8)


@dataclass(eq=False)
class Group:
    """What is computed as one operation.

    Attributes
    ----------
    layer, stage : str
        Stage as in `softnum.tta.workloads.STAGES`.
    product : tuple or None
        (M, N, K, count) of a matrix product.
    steps : list of (str, list, list)
        Of each step its name, and the values that it makes and reads.
    flops : int
    reads : dict of Value to int
        Elements.
    formats : tuple of str
        Of a product's operands.
    unfolded, lanes : (int, int or float, str) or None
        Elements, bits and format of a convolution's unfolded operand; of a unit's lanes.
    """

    layer: str
    stage: str
    product: tuple | None = None
    steps: list[tuple[str, list, list]] = field(default_factory=list)
    flops: int = 0
    reads: dict[Value, int] = field(default_factory=dict)
    made: list[Value] = field(default_factory=list)
    formats: tuple[str, ...] = ()
    unfolded: tuple | None = None
    lanes: tuple | None = None


class Flow:
    """A listener that follows values.

    Parameters
    ----------
    work : softnum.train.runs.loop.Run
        Whose parameters, states and buffers it knows from the start.

    Attributes
    ----------
    groups : list of Group
        In the order in which they run.
    values : list of Value
    """

    def __init__(self, work) -> None:
        self.work, self.groups, self.values = work, [], []
        self._carrier = "binary32" if work.numerics.backend.dtype == np.float32 else "binary64"
        self._known: dict = {}  # key of an array -> the array, kept alive, and its values; () of a constant
        self._ops: dict = {}  # value -> the operation of the tape that made or saved it
        self._regions: dict = {}  # key of a matrix -> (row, end, column, end) of all that is not +0 by construction
        self._parameters = {id(parameter): index for index, parameter in enumerate(work.network.parameters)}
        self._owned: dict = {}
        self._own()

    # -- what outlives an operation --------------------------------------------------------------------------------
    def _own(self) -> None:
        """Note what has become a parameter's value or gradient, a state or a buffer."""
        for layer in self.work.network.layers:
            for buffer in layer.buffers:
                role = layer.numerics.design.roles["statistics"]
                self._claim(buffer.value, ("buffer", id(buffer), buffer.name), layer.name, role)
        for index, parameter in enumerate(self.work.network.parameters):
            layer, name = parameter.layer, parameter.name
            self._claim(parameter.value, ("parameter", index, name), layer.name, layer.design.roles["master"])
            if parameter.gradient is not None and self.work.numerics.stage == "update":
                role = layer.design.roles["weight_gradients"]
                self._claim(parameter.gradient, ("gradient", index, name), layer.name, role)
        for optimiser in self.work.optimisers.values():
            for state, role in optimiser.state_roles.items():
                for parameter, array in optimiser.arrays_of(state):
                    owner = ("state", self._parameters[id(parameter)], state)
                    self._claim(array, owner, parameter.layer.name, parameter.layer.design.roles[role])
        for sparse in self.work.sparse.values():
            for place, array in sparse.residuals.items():
                parameter = sparse.parameters[place]
                role = parameter.layer.design.roles["weight_gradients"].sparsity.feedback
                self._claim(array, ("state", self._parameters[id(parameter)], "residual"), parameter.layer.name, role)

    def _claim(self, array, owner: tuple, layer: str, role: RoleRounding) -> None:
        if self._owned.get(owner) is array:
            return
        self._owned[owner] = array
        name, bits = _format(role)
        values = self._known.get(_key(array), (None, ()))[1]
        if len(values) == 1:
            values[0].owner, values[0].layer = owner, layer
        else:  # there from the start, or joined of parts
            maker = max((value.maker for value in values if value.maker is not None), default=None)
            value = self._new(Value(layer, owner[2], array.size, bits, name, maker, owner))
            if maker is not None:
                self.groups[maker].made.append(value)
            self._learn(array, (value,))

    def _new(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def _learn(self, array, values: tuple) -> None:
        self._known[_key(array)] = (array, values)

    def saw(self, loss) -> None:
        """Take note of a tape: which operation made each array, and which saved it."""
        for node in loss._order():
            if node.op is not None:
                for array in _arrays((node.value, node.saved)):
                    for value in self._known.get(_key(array), (None, ()))[1]:
                        self._ops.setdefault(value, node.op)

    # -- events ----------------------------------------------------------------------------------------------------
    def __call__(self, event: Event) -> None:
        self._own()
        method, results = event.method, list(_arrays((event.result,)))
        if method in _NOTHING:
            return
        if method in _CONSTANT:
            for array in results:
                self._learn(array, ())
            return
        arrays = list(_arrays(event.arguments))
        if method in _ROUND:
            self._round(event, arrays[0], results[0])
        elif any(result is array for result in results for array in arrays):
            return  # nothing happened, as in a division by 1
        elif (method in EXACT and method not in _SELECT) or self._joins(event, arrays):
            values = tuple(dict.fromkeys(value for array in arrays for value in self._values(array)))
            for array in results:
                self._learn(array, values)
            if method == "place":
                _, shape, *slices = event.arguments
                ranges = [part.indices(size)[:2] for part, size in zip(slices, shape, strict=True)]
                self._regions[_key(results[0])] = [(*ranges[0], *ranges[1])]
        elif event.unit is not None and method in _PRODUCT:
            self._product(event, arrays, results[0])
        elif event.stage == "forward" and self._packs(event, arrays, results[0]):
            return
        else:
            self._compute(event, arrays, results)

    def _packs(self, event: Event, arrays: list, result) -> bool:
        """Whether a step is part of pruning weights by a pattern: then the update does it, as it rounds them."""
        found = [value for array in arrays for value in self._values(array)]
        if event.method == "kept_of_groups" and len(found) == 1 and found[0].owner and found[0].owner[0] == "parameter":
            _, keep, group, axis = event.arguments
            size, owner = arrays[0].shape[axis], found[0].owner[1]
            kept = Fraction(size // group * keep + min(size % group, keep), size)
            mask = Value(found[0].layer, "mask", result.size, 1, "bit", None, copy_of=owner)
            mask.pattern = (kept, (group - 1).bit_length())
            self._learn(result, (self._new(mask),))
            return True
        masks = [value for value in found if value.pattern is not None and value.format == "bit"]
        copy_of = self._copied(event.method, arrays)
        if event.method != "prune" or copy_of is None or [mask.copy_of for mask in masks] != [copy_of]:
            return False
        (source,) = (value for value in found if value not in masks)
        packed = Value(source.layer, source.name, source.elements, source.bits, source.format, None, copy_of=copy_of)
        packed.pattern = masks[0].pattern
        packed.bits = _packed(source.bits, packed.pattern)
        self._learn(result, (self._new(packed),))
        return True

    def _joins(self, event: Event, arrays: list) -> bool:
        """Whether a sum is of gradients that share no element, which stand in +0: then it only puts them together."""
        if event.method == "add":
            regions = [self._regions.get(_key(array)) for array in arrays]
            if None not in regions and not any(_overlap(a, b) for a in regions[0] for b in regions[1]):
                self._regions[_key(event.result)] = [*regions[0], *regions[1]]
                return True
        return False

    def _values(self, array) -> tuple[Value, ...]:
        """The values that an array holds; of one that comes from outside, a new one, or none if it is one number."""
        key = _key(array)
        if key not in self._known:
            values = ()
            if array.dtype.kind == "f" and (array != array.flat[0]).any():
                bits = 8 * array.dtype.itemsize
                values = (self._new(Value("input", "samples", array.size, bits, f"binary{bits}", None, data=True)),)
            self._learn(array, values)
        return self._known[key][1]

    def _round(self, event: Event, array, result) -> None:
        rounding = event.rounding
        name, bits = _format(rounding)
        layer = event.layer or "input"
        rounded = []
        for value in self._values(array):
            if value.saved:
                rounded.append(value)
                continue
            if value.format == name and not rounding.by_products and not value.data:
                rounded.append(value)
                continue
            axis = event.arguments[2] if event.method in ("quantize_blocks", "quantize_scaled") else None
            key, elements = (name, axis), value.elements
            if rounding.stochastic:  # its bits are its own
                key, elements = (name, axis, len(self._known)), min(elements, array.size)
            if key not in value.rounded:
                own = Value(value.layer, value.name, elements, bits, name, value.maker, along=axis, source=value)
                own.pattern, own.bits = value.pattern, _packed(bits, value.pattern)
                own.copy_of = value.owner[1] if value.owner and value.owner[0] == "parameter" else value.copy_of
                if value.data:
                    own.layer, own.name = layer, "input"
                if own.maker is not None:
                    self.groups[own.maker].made.append(own)
                value.rounded[key] = self._new(own)
            rounded.append(value.rounded[key])
        if event.place == SAVED:
            for value in rounded:
                value.saved = True
        self._learn(result, tuple(rounded))

    def _product(self, event: Event, arrays: list, result) -> None:
        first, second = arrays[:2]
        layer, key = event.layer, event.place
        if event.method != "convolve":
            if not self._values(first):  # ones: the sums of a bias' gradient
                self._compute(event, arrays, [result], name="bias_sum")
                return
            m, k, n = first.shape[-2], first.shape[-1], result.shape[-1]
            size = (m, n, k, int(np.prod(result.shape[:-2], dtype=np.int64)))
        else:
            size = _convolution(key, first, second, event.arguments[6])
        group = Group(layer, key, size, [(self._name("gemm", event), [], [])], 2 * int(np.prod(size, dtype=object)))
        self.groups.append(group)
        for array in arrays:
            self._read(array)
        operands = [self._operand(array, event, place) for place, array in enumerate((first, second))]
        group.formats = tuple(name for name, _ in operands)
        m, n, k, count = size
        if m * k * count > sum(value.elements for value in self._values(first)):
            group.unfolded = (m * k * count, operands[0][1], operands[0][0])
        unit = event.unit
        lanes = getattr(unit, "lanes", 1)
        if lanes > 1:
            group.lanes = (m * n * count * lanes, unit.c_format.bits, describe_format(unit.c_format, "")["format"])
        self._make(result, "product", event.delivered.bits, describe_format(event.delivered, "")["format"])

    def _operand(self, array, event: Event, place: int) -> tuple[str, int | float]:
        """Format and bits of an operand: of the values in it, or those that the unit takes."""
        values = self._values(array)
        if values and not values[0].saved:
            return values[0].format, values[0].bits
        fmt = event.unit.operand[place]
        return describe_format(fmt, "")["format"], _bits(fmt)

    def _compute(self, event: Event, arrays: list, results: list, *, name: str | None = None) -> None:
        method, rounding = event.method, event.rounding
        layer, stage = self._place(event, arrays)
        group = self.groups[-1] if self.groups else None
        if group is None or group.product is not None or (group.layer, group.stage) != (layer, stage):
            group = Group(layer, stage)
            self.groups.append(group)
        fmt, bits, flops = self._carrier, int(self._carrier[-2:]), 0
        size = max((array.size for array in (*arrays, *results)), default=0)
        if method in _SELECT:
            name, flops = _SELECT[method], size
            chosen = [value for array in arrays for value in self._values(array) if value.format != "bit"]
            if chosen:
                fmt, bits = max(((value.format, value.bits) for value in chosen), key=lambda pair: pair[1])
        elif event.unit is not None and method in _PRODUCT:
            fmt, bits = describe_format(event.delivered, "")["format"], event.delivered.bits
            flops = 2 * results[0].size * arrays[0].shape[-1]
        elif method in ("run_operator", "run_operator_backward"):
            name = f"operator {event.arguments[0].name}"
            fmt, bits = _format(self.work.numerics.layer(layer).design.roles["elementwise"])
        elif rounding is not None:
            fmt, bits = _format(rounding)
            operation = event.arguments[0] if method in ("compute", "operate") else method
            name, flops = ("fma" if operation == "axpy" else operation), _FLOPS.get(operation, 1) * results[0].size
        elif method in BINARY64:
            fmt, bits, flops = "binary64", 64, size
        elif method in CARRIER:
            flops = size
        else:
            raise ValueError(
                f"softnum.train.inspect.dataflow does not know what the backend's {method} reads and makes"
            )
        name = self._name(name or method, event)
        group.flops += flops
        tested = method == "where_positive"
        for place, array in enumerate(arrays):
            self._read(array, tested=tested and place == 0)
        copy_of, before = self._copied(method, arrays), len(group.made)
        for array in results:
            if array.dtype.kind == "b":
                self._make(array, "mask", 1, "bit")
            elif array.dtype.kind in "iu":  # which place of a window it was
                places = len(event.arguments[0])
                self._make(array, "place", max(1, (places - 1).bit_length()), "index")
            else:
                self._make(array, name, bits, fmt, copy_of)
        group.steps.append((name, group.made[before:], [v for array in arrays for v in self._values(array)]))

    def _copied(self, method: str, arrays: list) -> int | None:
        """The parameter whose working copy is pruned or chosen from here."""
        if method not in ("choose", "prune"):
            return None
        found = [value for array in arrays for value in self._values(array) if value.format != "bit"]
        if len(found) != 1:
            return None
        owner = found[0].owner
        return owner[1] if owner and owner[0] == "parameter" else found[0].copy_of

    def _place(self, event: Event, arrays: list) -> tuple[str, str]:
        """Layer and stage of a step."""
        numerics = self.work.numerics
        layer, place = numerics.place or ("input", "")
        if event.method in BINARY64 and event.method not in ("divide", "norm", "exp", "log", "ordered_sum"):
            layer = "loss"
        if event.stage != "backward":
            return layer, event.stage
        if event.layer is None and event.method != "divide":
            place = ""
        if event.method in _SELECT and event.layer is None:  # of the layer whose result it was
            made = [value for array in arrays for value in self._values(array) if value.maker is not None]
            made = [value for value in made if self.groups[value.maker].stage == "forward"]
            layer = self.groups[made[0].maker].layer if made else layer
        weights = place in ("weight_gradients", "backward_weight") and layer != "loss"
        return layer, "backward_weight" if weights else "backward_data"

    def _name(self, name: str, event: Event) -> str:
        """What a step is called; in an update, the optimiser."""
        if event.stage == "update":
            sparse = event.sparsity is not None or event.place == "weight_gradients"
            return "sparse_gradient" if sparse else self.work.settings.optimiser
        return "weight_gradient" if event.place == "weight_gradients" else name

    def kind(self, group: Group) -> str:
        """What a group computes: the tape's operations of its steps, in order, and the steps that have none.

        Forwards a step belongs to the operation whose result it makes, or that of the step after it; backwards to the
        one that saved what it reads, or that of the step before it.
        """
        kinds: list[str] = []
        forward = group.stage == "forward"
        known = ""
        for name, made, read in reversed(group.steps) if forward else group.steps:
            known = next(filter(None, map(self._operation, made if forward else read)), known)
            own = name in ("bias_sum", "weight_gradient") or known in ("", "function", "operator")
            plain = own or group.stage == "update"
            kinds.append(name if plain else known)
        if forward:
            kinds.reverse()
        return "+".join(dict.fromkeys(kinds))

    def _operation(self, value: Value | None) -> str:
        """The tape's operation that made or saved a value, or what it is a rounding of."""
        while value is not None and value not in self._ops:
            value = value.source
        return "" if value is None else self._ops[value]

    def _read(self, array, *, tested: bool = False) -> None:
        values, number = self._values(array), len(self.groups) - 1
        group, total = self.groups[-1], sum(value.elements for value in values)
        for value in values:
            if value.maker == number:
                continue
            if tested:
                value.tested.add(number)
                continue
            elements = value.elements if array.size >= total else -(-array.size * value.elements // total)
            group.reads[value] = min(value.elements, max(elements, group.reads.get(value, 0)))
            value.readers.add(number)

    def _make(self, array, name: str, bits, fmt: str, copy_of: int | None = None) -> None:
        number = len(self.groups) - 1
        value = self._new(Value(self.groups[-1].layer, name, array.size, bits, fmt, number, copy_of=copy_of))
        self.groups[-1].made.append(value)
        self._learn(array, (value,))

    def finish(self) -> None:
        """Keep one bit an element of what the backward pass only tests for its sign."""
        self._own()
        for value in [value for value in self.values if value.tested]:
            if any(self.groups[reader].stage != "forward" for reader in value.readers):
                held = value  # its numbers are there anyway
            else:
                held = self._new(Value(value.layer, "mask", value.elements, 1, "bit", value.maker))
                if held.maker is not None:
                    self.groups[held.maker].made.append(held)
            held.readers |= value.tested
            for group in value.tested:
                self.groups[group].reads[held] = held.elements


def _overlap(a: tuple, b: tuple) -> bool:
    """Whether two parts of a matrix, each (row, end, column, end), share an element.

    >>> _overlap((0, 2, 0, 4), (2, 4, 0, 4)), _overlap((0, 2, 0, 4), (1, 3, 3, 5))
    (False, True)
    """
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _key(array):
    """What tells an array from others as long as it lives; of blocks, whose views are made anew, their memory."""
    if isinstance(array, BlockArray):
        return "blocks", array.codes.__array_interface__["data"][0]
    return id(array)


def _arrays(parts):
    """Arrays of numbers and masks, BlockArrays, and elements that have scales, among arguments or results, in order."""
    for part in parts:
        if isinstance(part, Scaled):
            yield part.elements
        elif isinstance(part, BlockArray) or is_array(part):
            yield part
        elif isinstance(part, (tuple, list)):
            yield from _arrays(part)


def _format(rounding: RoleRounding) -> tuple[str, int | float]:
    return rounding.describe()["format"], rounding.bits_per_value


def _packed(bits: int | float, pattern: tuple[Fraction, int] | None) -> int | float:
    """Bits of an element where only those that a pattern keeps are stored, each with its index; or as before, if less.

    >>> _packed(8, (Fraction(1, 2), 2)), _packed(8, (Fraction(15, 16), 4)), _packed(8, None)
    (5, 8, 8)
    """
    if pattern is None:
        return bits
    share, index = pattern
    packed = min(Fraction(bits), (Fraction(bits) + index) * share)
    return packed.numerator if packed.denominator == 1 else float(packed)


def _bits(fmt) -> int | float:
    return fmt.bits_per_value


def _convolution(key: str, a, b, geometry: dict) -> tuple[int, int, int, int]:
    """(M, N, K, count) of a convolution's product: of its unfolded operand, once for each group."""
    groups = geometry.get("groups", 1)
    if key == "backward_weight":
        places = int(np.prod(geometry["kernel"]))
        pixels = len(b) * int(np.prod(b.shape[2:]))
        return a.shape[1] // groups * places, b.shape[1] // groups, pixels, groups
    filters, channels, *kernel = b.shape
    if key == "backward_data":
        pixels = len(a) * int(np.prod(geometry["size"]))
        return pixels, channels, filters // groups * int(np.prod(kernel)), groups
    options = [geometry.get(name, one) for name, one in (("stride", 1), ("padding", 0), ("dilation", 1))]
    s = shape_of("conv2d", *a.shape[:2], filters, a.shape[2:], kernel, *options, groups)
    return len(a) * int(np.prod(s.result)), filters // groups, channels * int(np.prod(kernel)), groups
