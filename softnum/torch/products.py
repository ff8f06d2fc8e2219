"""The matrix products of a model's training iteration, without computing them: for simulators and estimates."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_map_only

from softnum.torch.functions import FUNCTIONS
from softnum.torch.models import mode_of
from softnum.torch.numerics import Arithmetic
from softnum.train.designs.gemms import design_gemms
from softnum.train.nets.network import product_rows
from softnum.tta.workloads.hardware import DesignPoint, Gemm, Hardware
from softnum.tta.workloads.operations import Workload, workload_of_gemms

__all__ = ["gemms", "workload"]


def gemms(model: nn.Module, *inputs, **options) -> list[dict]:
    """The matrix products of one training iteration of a converted model.

    Nothing is computed: the model runs once on tensors that have shapes and no numbers.

    Parameters
    ----------
    model : torch.nn.Module
        A converted one (`convert`), not compiled.
    *inputs, **options
        What it is called with. Of tensors only shapes and dtypes matter.

    Returns
    -------
    list of dict
        As `softnum.train.design_gemms` returns it: ``layer``, ``pass``, ``M``, ``N``, ``K``, ``count`` of equal ones,
        ``bits`` of the wider operand and ``formats`` of both. A convolution is the product of its unfolded operand,
        once for each group; batches of matrices are counted. What needs no gradient has no product in a backward pass;
        gradients of biases and embeddings are not listed.

    Raises
    ------
    ValueError
        If the model is not converted.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = st.convert(torch.nn.Linear(64, 10), "i-mxfp8", quiet=True)
    >>> st.gemms(model, torch.zeros(32, 64))[0]
    {'layer': '', 'pass': 'forward', 'M': 32, 'N': 10, 'K': 64, 'bits': 8.25, 'formats': ['mxfp8_e4m3', 'mxfp8_e4m3']}
    """
    mode = mode_of(model)
    seen, before = [], {name: getattr(mode, name) for name in ("state", "calls", "rank", "axes")}
    apply = mode.apply

    def noting(name, inputs, part="", options=(), constants=(), axis=0):
        layer = f"{mode.running()}.{part}" if part else mode.running()
        needs = [torch.is_grad_enabled() and x.requires_grad for x in inputs]
        seen.append((name, layer, [tuple(x.shape) for x in inputs], needs, FUNCTIONS[name].named(options, constants)))
        return apply(name, inputs, part, options, constants, axis)

    mode.apply, mode.rank = noting, None
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as fake, torch.enable_grad():

            def shape_of(x):
                return x if isinstance(x, FakeTensor) else fake.from_tensor(x)

            tensors = {name: shape_of(x) for name, x in (*model.named_parameters(), *model.named_buffers())}
            inputs, options = tree_map_only(torch.Tensor, shape_of, (inputs, options))
            torch.func.functional_call(model, tensors, inputs, options)
    finally:
        del mode.apply
        vars(mode).update(before)
    return design_gemms(_Layers(mode.arithmetic), _Products(mode.arithmetic, seen), 1)


def workload(model: nn.Module, *inputs, batch: int, name: str = "", **options) -> Workload:
    """The matrix products of one training iteration as `softnum.tta` takes them.

    Parameters
    ----------
    model, *inputs, **options
        As of `gemms`.
    batch : int
        Samples of the iteration.
    name : str
        Of the network. Default: the model's class.

    Returns
    -------
    softnum.tta.Workload
        One operation a product (`softnum.tta.workload_of_gemms`); `softnum.tta.write_workloads` writes a file of them,
        which ``softnum estimate`` reads.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> from softnum.tta import device, roofline
    >>> model = st.convert(torch.nn.Linear(64, 10), "a-float32", quiet=True)
    >>> work = st.workload(model, torch.zeros(32, 64), batch=32)
    >>> [(part.stage, part.gemm.shape) for part in work.operations]
    [('forward', (32, 10, 64)), ('backward_weight', (64, 10, 32))]
    >>> roofline(work, device("v100")).time.kind
    'estimated'
    """
    design = mode_of(model).arithmetic.design
    hardware = Hardware.from_table(design.hardware, f"{design.path}: [hardware]") if design.hardware else None
    rows = gemms(model, *inputs, **options)
    point = DesignPoint(design.name, hardware, tuple(Gemm.from_table(row, "a product") for row in rows))
    return workload_of_gemms(point, batch, name or type(model).__name__)


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
        calls = [(layer, needs, _sizes(name, shapes, facts)) for name, layer, shapes, needs, facts in self._seen
                 if name in ("conv2d", "linear", "matmul")]  # fmt: skip
        rows = [(layer, "forward", *sizes[0]) for layer, _, (count, *sizes) in calls for _ in range(count)]
        for layer, needs, (count, _, *sizes) in reversed(calls):
            passes = zip(("backward_data", "backward_weight"), needs, sizes, strict=False)
            rows += [(layer, key, *size) for key, need, size in passes if need for _ in range(count)]
        return product_rows(rows)


def _sizes(name: str, shapes: list[tuple], facts: dict) -> tuple:
    """How many products a pass has, and (M, N, K) of the three passes."""
    first, second, *_ = shapes
    if name == "conv2d":
        groups, place = facts["groups"], math.prod(second[2:])
        filters, channels = second[0] // groups, second[1]
        results = first[0] * math.prod(FUNCTIONS[name].shape(shapes, facts)[2:])
        data = first[0] * math.prod(first[2:]), channels, filters * place
        return groups, (results, filters, channels * place), data, (channels * place, filters, results)
    if name == "linear":
        m, k, n = math.prod(first[:-1]), first[-1], second[0]
        return 1, (m, n, k), (m, k, n), (k, n, m)
    (*batch, m, k), n = first, second[-1]
    return math.prod(batch), (m, n, k), (m, k, n), (k, n, m)
