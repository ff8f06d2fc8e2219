"""What a training iteration of a model consists of, without computing it: for simulators and estimates."""

from __future__ import annotations

from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils.checkpoint import CheckpointFunction

from softnum.torch import operations
from softnum.torch.calls import new_state
from softnum.torch.dataflow.flow import Flow
from softnum.torch.dataflow.operations import PRODUCTS, needs_of, product_sizes
from softnum.torch.dataflow.steps import Step, Whole
from softnum.torch.dataflow.trace import trace, without_numbers
from softnum.torch.functions import FUNCTIONS
from softnum.torch.models import mode_of
from softnum.torch.numerics import Arithmetic
from softnum.torch.ranks import STEPPED
from softnum.train.designs.convolutions import algorithm_of
from softnum.train.designs.gemms import design_gemms
from softnum.train.inspect.dataflow import Group, Value
from softnum.train.inspect.workloads import short_name, weights_of, workspace_of
from softnum.train.nets.network import product_rows
from softnum.tta.workloads.hardware import Gemm
from softnum.tta.workloads.operations import Operation, StoredTensor, Workload

__all__ = ["convolutions", "gemms", "products_of_step", "workload", "workload_of_step"]

_GEOMETRY = ("stride", "padding", "dilation", "groups")


def gemms(model: nn.Module, *inputs, **options) -> list[dict]:
    """The matrix products of one training iteration of a converted model.

    Nothing is computed: the model runs once on tensors without data.

    Parameters
    ----------
    model : torch.nn.Module
        A converted one (`convert`), not compiled.
    *inputs, **options
        The arguments of the model. Only shapes and dtypes of tensors matter.

    Returns
    -------
    list of dict
        As `softnum.train.design_gemms` returns it: ``layer``, ``pass``, ``M``, ``N``, ``K``, ``count`` of equal ones,
        ``bits`` of the wider operand and ``formats`` of both. A convolution is the product of its unfolded operand,
        once for each group; batches of matrices are counted. What needs no gradient has no product in a backward pass;
        gradients of biases and embeddings are not listed. Where an LSTM or RNN is computed exactly, its state before
        the first step counts as 0, which enters no product.

    Raises
    ------
    ValueError
        If the model is not converted, or operands of a product do not belong together.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = st.convert(torch.nn.Linear(64, 10), "i-mxfp8", quiet=True)
    >>> st.gemms(model, torch.zeros(32, 64))[0]
    {'layer': '', 'pass': 'forward', 'M': 32, 'N': 10, 'K': 64, 'bits': 8.25, 'formats': ['mxfp8_e4m3', 'mxfp8_e4m3']}
    """
    return _listed(model, _noted(model, Whole(model), inputs, options))


def products_of_step(step: Step, batch) -> list[dict]:
    """`gemms` of a batch's losses."""
    return _listed(step.model, _noted(step.model, step, (batch,), {}))


def _noted(model: nn.Module, called: Step | Whole, inputs, options) -> list[tuple]:
    """The functions that a model, or a `Step`, computes in a design's arithmetic, on tensors that hold no numbers."""
    mode, seen = mode_of(model), []
    apply = mode.apply

    def noting(name, inputs, part="", options=(), constants=(), axis=0, laid=None):
        layer = mode.part(part)
        if _misfit(name, inputs, FUNCTIONS[name].named(options, constants)):
            with unset_fake_temporarily():  # the real call says what is wrong
                zeros = [torch.zeros(x.shape, dtype=x.dtype, device=x.device) for x in inputs]
                operations.apply(name, zeros, new_state(0), mode.arithmetic.handle, layer, 0, options, constants)
        needs = [torch.is_grad_enabled() and x.requires_grad for x in inputs]
        seen.append((name, layer, [tuple(x.shape) for x in inputs], needs, FUNCTIONS[name].named(options, constants)))
        return apply(name, inputs, part, options, constants, axis, laid)

    def run(parameters, buffers, inputs, options) -> list[tuple]:
        seen.clear()
        tensors = {f"model.{name}": x for name, x in (parameters | buffers).items()}
        torch.func.functional_call(called, tensors, inputs, options)
        return seen

    mode.apply = noting
    try:  # which a reentrant checkpoint would run without a graph
        with patch.object(CheckpointFunction, "apply", lambda function, _, *inputs: function(*inputs)):
            return without_numbers(model, run, inputs, options)
    finally:
        del mode.apply


def _misfit(name: str, inputs: list[torch.Tensor], facts: dict) -> bool:
    """Whether a product's operands, of whose shapes its stand-in makes no question, do not belong together."""
    if name not in PRODUCTS:
        return False
    first, second = (x.shape for x in inputs[:2])
    if len({x.device for x in inputs}) > 1 or len({x.dtype for x in inputs}) > 1 or not inputs[0].is_floating_point():
        return True
    if name == "conv2d":
        fits = first[1] == second[1] * facts["groups"]
        return not fits or min(FUNCTIONS[name].shape([first, second], facts)) < 1
    return first[-1] != second[-1 if name == "linear" else -2]


def _listed(model: nn.Module, seen: list[tuple]) -> list[dict]:
    arithmetic = mode_of(model).arithmetic
    _convolutions(arithmetic, seen)
    return design_gemms(_Layers(arithmetic), _Products(arithmetic, seen), 1)


def convolutions(model: nn.Module, called: Step | Whole, inputs) -> dict[str, dict[str, str]]:
    """Layer -> pass -> by what its convolutions are computed, where a design states an algorithm: for a record."""
    arithmetic = mode_of(model).arithmetic
    return _convolutions(arithmetic, _noted(model, called, inputs, {})) if arithmetic.design.transforms else {}


def _convolutions(arithmetic: Arithmetic, seen: list[tuple]) -> dict[str, dict[str, str]]:
    """As `convolutions`; ValueError if one is computed that the design's algorithm does not have."""
    found: dict[str, dict[str, str]] = {}
    for _, path, shapes, needs, facts in (call for call in seen if call[0] == "conv2d"):
        made, geometry = FUNCTIONS["conv2d"].shape(shapes, facts), {key: facts[key] for key in _GEOMETRY}
        passes = {"forward": shapes[0]} | ({"backward_data": made} if needs[0] else {})
        layer, known, first = arithmetic.layer(path), arithmetic.known_as.get(path, path), path == arithmetic.first
        for key, shape in passes.items():
            _, by = algorithm_of(layer, known, key, tuple(shape), shapes[1], geometry, first=first)
            found.setdefault(path, {})[key] = by
    return found


def workload(
    model: nn.Module, *inputs, batch: int, name: str = "", optimizer: torch.optim.Optimizer | None = None, **options
) -> Workload:
    """One training iteration of a converted model as `softnum.tta` takes it: operations, and the tensors it keeps.

    The forward pass, the backward pass from the sum of what the model returns, and the optimiser's update, in the sense
    of `softnum.train.workload`: moving is free, a value is written once in each format in which an operation reads it,
    and element-by-element steps of one layer that follow each other are one operation. What PyTorch computes has the
    formats of its tensors' dtypes, and what softnum computes that of a tensor whose dtype is narrower. Operations that
    PyTorch computes in one, like a fused attention of its own, are one operation too; of a softmax or a normalisation
    the steps for each element count, as many as `softnum.train` has. Buffers are state, and constants of the iteration;
    other tensors that modules have are constants too, and take no memory. What a checkpoint computes again is of the
    forward pass of its layers. Nothing is computed, and the model is left as it was.

    Parameters
    ----------
    model, *inputs, **options
        As of `gemms`.
    batch : int
        Samples of the iteration.
    name : str
        Of the network. Default: the model's class.
    optimizer : torch.optim.Optimizer, optional
        What updates it: a `softnum.torch.Optimizer`, by the design's roles, or one of PyTorch's, in its dtypes. Without
        it there is no update, and no state of one.

    Returns
    -------
    softnum.tta.Workload
        Its matrix products are those of `gemms`; `softnum.tta.write_workloads` writes a file of them, which ``softnum
        estimate`` and ``softnum memory`` read.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> from softnum.tta import device, memory_of, roofline
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    >>> model = st.convert(model, "c-wang-fp8", known_as={"2": "fc"}, quiet=True)
    >>> work = st.workload(model, torch.zeros(32, 64), batch=32)
    >>> [(part.stage, part.kind) for part in work.operations][:3]
    [('forward', 'gemm'), ('forward', 'relu'), ('forward', 'gemm')]
    >>> roofline(work, device("v100")).time.kind, memory_of(work).allocated["feature_maps"]
    ('estimated', 8192)
    """
    optimizers = {} if optimizer is None else {"loss": optimizer}
    return _workload(model, Whole(model), inputs, options, batch, name or type(model).__name__, optimizers)


def workload_of_step(step: Step, inputs, batch: int, name: str, optimizers: dict) -> Workload:
    """`workload` of a batch's losses, each with the optimiser of its name."""
    return _workload(step.model, step, (inputs,), {}, batch, name, optimizers)


def _workload(model, called, inputs, options, batch: int, name: str, optimizers: dict) -> Workload:
    updates = {}
    for loss, optimizer in optimizers.items():
        owned = {parameter for group in optimizer.param_groups for parameter in group["params"]}
        names = [key for key, parameter in model.named_parameters() if parameter in owned]
        updates[loss] = dict.fromkeys(names, optimizer)
    rows = _listed(model, _noted(model, called, inputs, options))
    flow = trace(model, called, inputs, options, updates)
    return _Table(flow, rows).workload(name, mode_of(model).arithmetic.design.name, batch)


class _Table:
    """A workload in the making."""

    def __init__(self, flow: Flow, rows: list[dict]) -> None:
        self.flow = flow
        self._rows = {(row["layer"], row["pass"], row["M"], row["N"], row["K"]): row for row in rows}

    def workload(self, name: str, design: str, batch: int) -> Workload:
        """All of it."""
        operations = tuple(self._operation(group) for group in self.flow.groups)
        tensors = (*self._weights(), *self._transients(), *workspace_of(self.flow.groups))
        return Workload(name, design, batch, operations, tensors)

    def _operation(self, group: Group) -> Operation:
        read = sum(value.size(elements) for value, elements in group.reads.items())
        written = sum(value.size() for value in group.made if value.readers or _owner(value) == "buffer")
        formats, gemm = group.formats, None
        if group.product is not None:
            m, n, k, count = group.product
            gemm = Gemm.from_table({**self._rows[group.layer, group.stage, m, n, k], "count": count})
        else:
            formats = tuple(dict.fromkeys(short_name(value.format) for value in group.reads if value.format != "bit"))
        if group.stage == "update":  # in place: what it reads but the gradients, and what is made of parameters
            own = [value for value in group.reads if _owner(value) not in ("", "gradient")]
            copies = [copy for value in own for copy in value.rounded.values() if copy.copy_of and copy.readers]
            written += sum(value.size() for value in (*own, *copies))
        kind = "+".join(dict.fromkeys(name for name, _, _ in group.steps))
        return Operation(group.layer, group.stage, kind, group.flops, read, written, formats, gemm)

    def _weights(self):
        """Parameters in the formats that are read; what is kept beside: other masters, buffers, an update's states."""
        copies: dict[str, list[Value]] = {}
        for value in self.flow.values:
            if value.copy_of is not None and value.readers:
                copies.setdefault(value.copy_of, []).append(value)
        for value in self.flow.values:
            if _owner(value) != "parameter":
                continue
            whole = any(self.flow.groups[reader].stage != "update" for reader in value.readers)
            own = copies.get(value.owner[1], [])
            name = value.name.rpartition(".")[2]
            yield from weights_of(value.layer, name, value, own, whole)
        for value in self.flow.values:
            if _owner(value) == "buffer" and value.maker is None:
                name = value.name.rpartition(".")[2]
                yield StoredTensor(
                    value.layer, name, "optimiser_state", value.elements, value.bits, short_name(value.format)
                )  # fmt: skip
        for state in self.flow.states.values():
            name = f"{state.name.rpartition('.')[2]} {state.owner[2]}"
            yield StoredTensor(
                state.layer, name, "optimiser_state", state.elements, state.bits, short_name(state.format)
            )  # fmt: skip

    def _transients(self):
        for value in self.flow.values:
            owner = _owner(value)
            if not value.readers or value.copy_of is not None or owner not in ("", "gradient"):
                continue
            stage = "forward" if value.maker is None else self.flow.groups[value.maker].stage
            kind = "feature_maps" if stage == "forward" else "gradient_maps"
            if owner == "gradient":
                kind = "weight_gradients"
            live = (value.maker or 0, max(value.readers))
            yield StoredTensor(
                value.layer, value.name.rpartition(".")[2], kind, value.elements, value.bits, short_name(value.format),
                not owner and (value.source is None or _owner(value.source) != "buffer"), stage, live,
            )  # fmt: skip


def _owner(value: Value) -> str:
    """What a value is that outlives an operation: parameter, gradient, state or buffer; "" of others."""
    return value.owner[0] if value.owner else ""


class _Layers:
    """A design's layers by the paths of modules."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.layer = lambda path, first: arithmetic.layer(path)


class _Products:
    """What was computed, as `design_gemms` asks a network for it."""

    def __init__(self, arithmetic: Arithmetic, seen: list[tuple]) -> None:
        self.layer_names, self._seen = [arithmetic.first], seen

    def gemms(self, batch: int) -> list[dict]:
        """As of `softnum.train.nets.network.Network.gemms`, of one iteration as it was computed."""
        calls = [(layer, needs_of(name, needs), product_sizes(name, shapes, facts))
                 for name, layer, shapes, needs, facts in self._seen
                 if name in (*PRODUCTS, *STEPPED)]  # fmt: skip
        rows = [(layer, "forward", *sizes[0]) for layer, _, (count, *sizes) in calls for _ in range(count)]
        for layer, needs, (count, _, *sizes) in reversed(calls):
            passes = zip(("backward_data", "backward_weight"), needs, sizes, strict=True)
            rows += [(layer, key, *size) for key, need, size in passes if need for _ in range(count)]
        return product_rows(rows)
