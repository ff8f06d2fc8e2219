"""Which part of a batch a rank has, and where the axis of the batch lies in a model's tensors.

Random bits of rows are those that one process would draw for them, which had the batches of all ranks, one after the
other in the order of ranks. So what is rounded must be known to be rows of the batch, or else to be the same on every
rank. All tensors of a forward pass begin with the axis of the batch; but parameters, buffers and what is made of these
alone is the same everywhere; and functions that move axes are followed. What cannot be told is an error where bits
depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from softnum.torch.sharing import Sharing

__all__ = ["REPEATED", "SHARED", "STEPPED", "Axes", "Place", "check_product", "check_rows", "check_tiles", "place_of"]

#: instead of an axis: what is the same on every rank; and the same, but perhaps so often as there are samples
SHARED, REPEATED = "shared", "repeated"
_SAME = {SHARED, REPEATED}


class Place(NamedTuple):
    """Of a forward pass: the rank, how many samples of the whole batch come before its own, how many it has, how many
    the whole batch has, or 0 where that is not known, and the number of the processes that share it (`Sharing`)."""

    rank: int
    first: int
    rows: int
    whole: int
    sharing: int


def place_of(stated, model: nn.Module, arguments, training: bool) -> Place | None:
    """Where a forward pass with some arguments lies in the whole batch; None of one process.

    Parameters
    ----------
    stated : (int, int or None, int or None, int or None, ProcessGroup or None), None or ...
        Rank, first sample, number of samples, that of the whole batch and the processes, as `softnum.torch.set_rank`
        takes them; None: it is one process; ...: as DistributedDataParallel or fully_shard spread the model.
    model : torch.nn.Module
    arguments : nested tensors
    training : bool

    Raises
    ------
    ValueError
        If the tensors do not have one length, which the batch has.
    RuntimeError
        If there are several processes, and it is not known whether they share batches.
    """
    ranks, groups = None, ()
    if stated is ...:
        rank, ranks, groups = _rank(model, training)
        stated = None if rank is None else (rank, None, None, None, None)
    if stated is None:
        return None
    rank, first, rows, whole, group = stated
    if rows is None:
        lengths = {len(x) if x.dim() else 0 for x in tree_leaves(arguments) if isinstance(x, torch.Tensor)}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(
                "on several ranks, random bits are those of the whole batch's rows, and the model's arguments do not "
                f"tell how many there are (their lengths are {', '.join(map(str, sorted(lengths))) or 'none'}); "
                "state it: softnum.torch.set_rank(model, rank, rows=...)"
            )
        (rows,) = lengths
    if whole is None:
        whole = ranks * rows if ranks else 0
    if not groups and torch.distributed.is_available() and torch.distributed.is_initialized():
        groups = (group or torch.distributed.group.WORLD,)
    return Place(rank, rank * rows if first is None else first, rows, whole, Sharing.number(groups))


def _rank(model: nn.Module, training: bool) -> tuple[int | None, int, tuple]:
    """The rank of this process among those that share a model's batches, how many they are, and their groups, one for
    each axis of a mesh; None of one process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None, 1, ()
    spread = DistributedDataParallel._get_active_ddp_module()
    if spread is not None:
        group = spread.process_group
        return torch.distributed.get_rank(group), torch.distributed.get_world_size(group), (group,)
    from torch.distributed.fsdp import FSDPModule

    for module in model.modules():
        if isinstance(module, FSDPModule):
            state = module._get_fsdp_state()
            groups = getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]  # before PyTorch 2.12
            if groups[0] is not None:
                return _rank_in(groups[0].mesh_info)
    if training and torch.distributed.get_world_size() > 1:
        raise RuntimeError(
            "the model rounds stochastically, or by scales of whole tensors, and is trained on one of several ranks, "
            "but neither DistributedDataParallel nor fully_shard spreads it; state where its batch lies in that of all "
            "ranks, softnum.torch.set_rank(model, rank), or that it is one process: softnum.torch.set_rank(model, None)"
        )
    return None, 1, ()


def _rank_in(info) -> tuple[int, int, tuple]:
    mesh, place = info.mesh, 0
    if getattr(info, "is_spmd_mesh", False):
        raise ValueError(
            "the model is sharded over a mesh that does not tell which of its ranks share a batch; state it: "
            "softnum.torch.set_rank(model, rank)"
        )
    for index, size in zip(mesh.get_coordinate(), mesh.shape, strict=True):
        place = place * size + index
    return place, mesh.size(), tuple(mesh.get_group(axis) for axis in range(mesh.ndim))


# -- where the axis of the batch lies ----------------------------------------------------------------------------------

_VIEWS = """
__getitem__ __iter__ adjoint broadcast_to chunk expand expand_as mH mT moveaxis movedim narrow permute select split
squeeze swapaxes swapdims T t tensor_split transpose unbind unsqueeze
"""
_OVER_ALL = "amax amin argmax argmin logsumexp max mean min norm prod roll std sum var"
_MIXING = """
cat concat concatenate cumsum flip flipud gather hstack index_add index_copy index_select masked_select repeat rot90
scatter scatter_add sort take take_along_dim tile topk vstack
"""
#: names of functions whose results are views, in which strides tell where an axis went
VIEWS = frozenset(_VIEWS.split())
#: and of those that may put samples elsewhere along the batch's axis, or add them: by default, along all axes
OVER_ALL = frozenset(_OVER_ALL.split())
#: or along one
MIXING = frozenset(_MIXING.split()) | OVER_ALL
#: operators that change their first operand
IN_PLACE = frozenset(f"__{name}__" for name in ["setitem", "iadd", "isub", "imul", "itruediv", "iand", "ior", "ixor"])
#: names of functions that put rows where tensors say
_PLACING = frozenset(("index_put", "masked_scatter", "put"))
#: by which what is the same on every rank may become as long as the batch
_GROWING = frozenset(
    ("broadcast_to", "cat", "concat", "concatenate", "expand", "expand_as", "repeat", "repeat_interleave", "stack",
     "tile")
)  # fmt: skip
#: products of which all operands but parameters are rows of the batch
_CELLS = frozenset((torch.lstm_cell, torch.gru_cell, torch.rnn_tanh_cell, torch.rnn_relu_cell))
#: functions of softnum.torch that are all steps of a recurrent layer
STEPPED = ("lstm", "rnn_relu", "rnn_tanh")
#: and those over time: input, states, and at the end whether the batch comes before time in the input
_RECURRENT = frozenset((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu))


class Axes:
    """Where the axis of the batch lies in the tensors of a forward pass.

    Parameters
    ----------
    model : torch.nn.Module
    place : Place

    Attributes
    ----------
    met : list
        Of the tensors that the function that is running was given, in their order: 0 and other axes; `SHARED` or
        `REPEATED`; or None, where it is not known.
    """

    def __init__(self, model: nn.Module, place: Place) -> None:
        self._found, self.place, self.rows = WeakIdKeyDictionary(), place, place.rows
        self.met: list = []
        for buffer in model.buffers():
            self._found[buffer] = SHARED

    def of(self, x: torch.Tensor) -> int | str | None:
        """The axis of a tensor."""
        return SHARED if isinstance(x, nn.Parameter) else self._found.get(x, 0)

    def follow(self, name: str, func: Callable, args, kwargs, compute: Callable):
        """What compute returns, a function's results for some arguments; their axes are noted."""
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        axes = [self.of(x) for x in given]
        self.met = [None] if func is torch.einsum or name.endswith("grouped_mm") else axes
        second = ()  # results whose second axis is the batch's
        if func is F.multi_head_attention_forward:  # of queries, keys and values; masks move nothing
            given, axes = given[:3], axes[:3]
            self.met = [0 if set(axes) == {1} else None]
        elif func in _RECURRENT and isinstance(args[-1], bool):
            known = axes[0] == 1 - args[-1] and {self.of(x) for x in tree_leaves(args[1])} <= {1, *_SAME}
            given, axes, self.met = given[:1], axes[:1], [0 if known else None]
            second = range(1, 3)
        if name in ("addmm", "baddbmm"):  # whose first operand is added
            self.met = axes[1:]
        elif func is F.scaled_dot_product_attention:  # whose mask moves nothing
            self.met = axes[:3]
        elif func in _CELLS:
            rows = set(axes) - {SHARED}
            self.met = [rows.pop() if len(rows) == 1 else None, SHARED]
        if name == "__get__":  # of a property: T, mT, shape ...
            name = getattr(getattr(func, "__self__", None), "__name__", name)
        result = compute()
        if name in IN_PLACE or (name.endswith("_") and not name.endswith("__")):
            self._changed(name.rstrip("_"), args, kwargs, given, axes)
            return result
        if isinstance(kwargs.get("out"), torch.Tensor):
            self._found[kwargs["out"]] = None
        if name == "__iter__":
            result = list(result)
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and not any(x is y for y in given)]
        for i, x in enumerate(made):
            axis = 1 if i in second else self._axis(name, func, args, kwargs, given, axes, x)
            if axis != 0:
                self._found[x] = axis
        return iter(result) if name == "__iter__" else result

    def _changed(self, name: str, args, kwargs, given, axes) -> None:
        """Note the axis of a tensor that was changed in place."""
        if not given:
            return
        placed = name == "__setitem" and any(isinstance(x, torch.Tensor) for x in tree_leaves(args[1]))
        moved = name in VIEWS or (placed and isinstance(args[2], torch.Tensor) and self.of(args[2]) not in _SAME)
        if axes[0] not in _SAME or set(axes[1:]) - _SAME:
            moved |= name in _PLACING or (name in MIXING and self._mixes(name, args, kwargs, axes[0] or 0))
        if moved:
            self._found[given[0]] = None
            return
        if set(axes[1:]) <= _SAME or (axes[0] == 0 and set(axes) <= {0, *_SAME}):
            return
        alike = set(axes[1:]) - _SAME
        known = len(alike) == 1 and all(x.shape == given[0].shape for x in given[1:]) and axes[0] in _SAME | alike
        self._found[given[0]] = alike.pop() if known else None

    def _axis(self, name: str, func, args, kwargs, given, axes, result):
        """The axis of the batch in one result."""
        own = [(x, axis) for x, axis in zip(given, axes, strict=True) if axis not in _SAME]
        if not own:
            repeated = not given or REPEATED in axes or name in _GROWING or name.startswith("new_")
            return REPEATED if repeated else SHARED
        known = [(x, axis) for x, axis in own if axis is not None]
        if len({axis for _, axis in known}) != 1:
            return None
        x, axis = known[0]
        if name in VIEWS and x.dim() and x is given[0]:
            return _moved(x, axis, func, args, kwargs, result)
        if name == "stack":
            dim = (args[1:] or (kwargs.get("dim", 0),))[0]
            return axis + (dim % result.dim() <= axis)
        if name in MIXING and self._mixes(name, args, kwargs, axis):
            return None
        if len(known) < len(own):
            return axis if any(x.shape == result.shape for x, _ in known) else None
        if axis == 0:
            return 0 if result.dim() and result.shape[0] % self.rows == 0 else None
        kept = result.dim() == x.dim() or result.shape[: axis + 1] == x.shape[: axis + 1]
        return axis if kept and result.shape[axis] == x.shape[axis] else None

    @staticmethod
    def _mixes(name: str, args, kwargs, axis: int) -> bool:
        """Whether a function may put samples elsewhere along the batch's axis."""
        x, *rest = args or (next(iter(kwargs.values())),)
        if name in ("max", "min") and any(isinstance(y, torch.Tensor) for y in (*rest, kwargs.get("other"))):
            return False  # of two tensors, element by element
        if name in ("repeat", "tile"):
            sizes = rest[0] if rest and isinstance(rest[0], (tuple, list)) else rest
            return not sizes or len(sizes) < x.dim() or any(n != 1 for n in sizes[: len(sizes) - x.dim() + axis + 1])
        rest = rest[1:] if name in ("norm", "roll", "topk") else rest
        default = None if name in OVER_ALL else -1 if name in ("sort", "topk") else 0
        dims = kwargs.get("dims", kwargs.get("dim", rest[0] if rest else default))
        rank = x.dim() if isinstance(x, torch.Tensor) else max(part.dim() for part in x)
        dims = dims if isinstance(dims, (tuple, list)) else (dims,)
        return not all(isinstance(dim, int) and dim % rank != axis for dim in dims)


def _moved(x: torch.Tensor, axis: int, func, args, kwargs, result: torch.Tensor):
    """Where an axis lies in a view: of numbers that lie side by side along this axis alone, its stride tells."""
    probe = torch.empty_strided(x.shape, [int(i == axis) for i in range(x.dim())], device="meta")
    args, kwargs = (tuple(probe if y is x else y for y in args), {k: probe if y is x else y for k, y in kwargs.items()})
    if x.shape[axis] == 1:  # whose stride tells nothing
        shape = [2 if i == axis else n for i, n in enumerate(x.shape)]
        probe = torch.empty_strided(shape, probe.stride(), device="meta")
        args = (probe, *args[1:])
    try:
        with torch._C.DisableTorchFunction():
            views = func(*args, **kwargs)
        view = views if isinstance(views, torch.Tensor) else next(iter(views))
    except (RuntimeError, TypeError, IndexError, NotImplementedError, StopIteration):
        return None
    if view._base is not probe:  # chosen by a tensor
        whole = axis == 0 and isinstance(args[1], tuple) and args[1][0] == slice(None)
        return 0 if whole and result.shape[0] == x.shape[0] else None
    where = [i for i, step in enumerate(view.stride()) if step == 1]
    found = view.dim() == result.dim() and len(where) == 1 and view.shape[where[0]] == probe.shape[axis]
    return where[0] if found else None


def check_product(
    name: str, axes: Axes, inputs: list[torch.Tensor], layer: str, axis: int, place: Place, *, numbered: bool
) -> int:
    """How many indices the axes before the batch's have in a function's operand; 0 of what is the same on every rank.

    Parameters
    ----------
    name : str
        The function's.
    axes : Axes
    inputs : list of torch.Tensor
    layer : str
    axis : int
        The batch's, in the first of these, where what the function was given begins with it.
    place : Place
    numbered : bool
        Whether rows take random bits; else it matters that the ranks' operands are those of the whole batch together.

    Raises
    ------
    NotImplementedError
        If it is not known which axis is the batch's, or it is another than the function takes.
    """
    met = axes.met
    if name == "linear" and isinstance(met[0], int) and 0 < met[0] < inputs[0].dim() - 1:
        axis, met = met[0], [0, *met[1:]]
    lengths = (x.shape[axis] if x.dim() > axis else 1 for x in inputs[: 1 + (name not in ("linear", "conv2d"))])
    length = max(lengths)
    if set(met) <= {SHARED} or (set(met) <= _SAME and length % axes.rows):
        return False
    how = "rounds stochastically" if numbered else "has scales of whole tensors"
    what = f"{name} in layer {layer!r}, which {how} on several ranks"
    if not numbered:
        stacks = inputs[0].dim() - (1 if name == "linear" else 2)
        met = [0 if isinstance(x, int) and x < stacks else x for x in met]
        if set(met) <= _SAME:
            return 0
    if set(met) <= _SAME:
        raise NotImplementedError(
            f"{what}: its operands are made of no sample, and their {length} rows may be as many as samples, or not; "
            "add something of a sample's (x * 0), or round to nearest in this layer"
        )
    if not set(met) <= {0, *_SAME}:
        raise NotImplementedError(
            f"{what}: these are those of the batch's rows, and the batch is not known to be the leading axis of "
            "the operands, or another one of the first operand; put it there, or state neither for this layer"
        )
    if name in ("linear", "conv2d") and (met[0] in _SAME or not set(met[1:]) <= _SAME):
        raise NotImplementedError(
            f"{what}: the second operand must be made of parameters alone, which are the same on every rank; multiply "
            "matrices of single samples: tensors of three or more dimensions"
        )
    if not numbered:
        return 1
    if length % axes.rows:
        raise NotImplementedError(
            f"{what}: its operand has {length} rows, and the batch has {axes.rows} samples on this rank; state how "
            "many there are, softnum.torch.set_rank(model, rank, rows=...), or let the batch be the leading axis"
        )
    outer = math.prod(inputs[0].shape[:axis])
    if outer > 1 and not place.whole:
        raise NotImplementedError(
            f"{what}: the batch is axis {axis} of the operand, whose rows are numbered by how many samples the whole "
            "batch has; state it: softnum.torch.set_rank(model, rank, whole=...)"
        )
    return outer


def check_rows(name: str, axes: Axes, laid: list[tuple[int, int]], layer: str, *, along: bool) -> int:
    """`check_product` of a function along rows, or of single elements, that rounds stochastically.

    Parameters
    ----------
    name : str
        The function's.
    axes : Axes
    laid : list of (int, int)
        Axes of what it was given, and their lengths, in the order in which the rows of its operand lie.
    layer : str
    along : bool
        Whether it works along rows: the other operands of a normalisation must be made of no sample.

    Raises
    ------
    NotImplementedError
        If it is not known which of these axes is the batch's, or whether one is.
    """
    met = axes.met if along else [*{axis for axis in axes.met if axis not in _SAME}] or axes.met
    first, *rest = met
    what = f"{name} in layer {layer!r}, which rounds stochastically on several ranks"
    if {first, *rest} <= {SHARED} or ({first, *rest} <= _SAME and all(size % axes.rows for _, size in laid)):
        return 0
    sizes, where = [size for _, size in laid], [axis for axis, _ in laid]
    if (
        first not in where
        or ((name.endswith("norm") or not along) and not set(rest) <= _SAME)
        or sizes[where.index(first)] % axes.rows
    ):
        raise NotImplementedError(
            f"{what}: random bits are those of the batch's rows, and the batch is not known to be an axis of the first "
            "operand that it does not add along, or other operands are made of samples; let elementwise and statistics "
            "round to nearest in this layer"
        )
    outer = math.prod(sizes[: where.index(first)])
    if not axes.place.whole and (along or outer > 1):
        raise NotImplementedError(
            f"{what}: rows, and sums along them, are numbered by how many samples the whole batch has; state it: "
            "softnum.torch.set_rank(model, rank, whole=...)"
        )
    return outer


def check_tiles(tiles: list[int], counts: list[int], leading: bool, what: str, place: Place) -> None:
    """Raise NotImplementedError if rows of two ranks' samples share a tile.

    Parameters
    ----------
    tiles : list of int
        Rows of tiles; 0: all.
    counts : list of int
        How many rows an operand has on this rank.
    leading : bool
        Whether the batch is its leading axis.
    what : str
    place : Place

    Examples
    --------
    >>> check_tiles([16], [64], True, "linear", Place(1, 4, 4, 8, 0))
    """
    for tile in tiles:
        for count in counts:
            each, rest = divmod(count, place.rows)
            ends = place.first * each, (place.first + place.rows) * each
            last = place.first + place.rows == place.whole
            if rest or not leading or any(end % tile if tile else end for end in ends[: 1 if last else 2]):
                raise NotImplementedError(
                    f"{what} on several ranks: {tile or 'all'} neighbours of {count} rows or elements of "
                    f"{place.rows} samples share a scale, and these tiles do not end where the rank's samples do; let "
                    "the batch be the leading axis and the tiles divide it, state how many samples there are "
                    "(softnum.torch.set_rank(model, rank, first=..., whole=...)), or tiles of single rows"
                )
