"""Functions of PyTorch that compute products, computed in a design's arithmetic: a torch function mode."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch._C._functorch import TransformType
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from softnum.torch.exact import ELEMENTWISE, EXACT, KEEPING, MOVING, summed, used
from softnum.torch.numerics import Arithmetic, new_state
from softnum.torch.operations import apply
from softnum.torch.recurrent import RECURRENT
from softnum.torch.tensors import array_of, result_dtype, tensor_of
from softnum.train.designs.design import Design

__all__ = ["arithmetic", "checkpoint_contexts"]


class arithmetic(TorchFunctionMode):
    """Compute the matrix products of PyTorch's functions in a design's arithmetic, inside a ``with`` statement.

    That is: ``linear``, ``matmul`` and ``@``, ``mm``, ``bmm``, ``addmm``, ``baddbmm``, ``einsum`` of two operands,
    ``conv1d``, ``conv2d``, ``embedding``, ``scaled_dot_product_attention``, ``multi_head_attention_forward``, ``lstm``,
    ``gru`` and the like. All other functions are PyTorch's own; those that would compute products of their own
    (``conv3d``, ...) raise an error. A result has the dtype of the first operand, to which what the accumulator holds
    is rounded.

    Parameters
    ----------
    design : Design, str, pathlib.Path or Arithmetic
        A design, its file or the name of a shipped one.
    seed : int
        Of stochastic roundings.
    elementwise : str
        What computes all that is no product: "torch", PyTorch's own functions, whose last bits depend on machine and
        threads; or "exact", softnum's operations, rounded as the design says for ``elementwise`` and ``statistics``,
        as in `softnum.train`. Functions that it lacks are errors then.

    Raises
    ------
    ValueError
        If the design has ``[layers]`` tables, which need a model's modules: `convert` it.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> x = torch.tensor([[1.0, 0.3]])
    >>> with st.arithmetic("i-mxfp8"):
    ...     y = x @ x.T
    >>> x @ x.T, y
    (tensor([[1.0900]]), tensor([[1.0977]]))
    """

    def __init__(
        self, design: Design | str | Path | Arithmetic, *, seed: int = 0, elementwise: str = "torch"
    ) -> None:  # fmt: skip
        super().__init__()
        if elementwise not in ("torch", "exact"):
            raise ValueError(f"elementwise must be 'torch' or 'exact', got {elementwise!r}")
        self.exact = elementwise == "exact"
        self.of_model = isinstance(design, Arithmetic)
        self.arithmetic = design if self.of_model else Arithmetic(design)
        if not self.of_model and self.arithmetic.design.layers:
            raise ValueError(
                f"design {self.arithmetic.design.name!r} has [layers] tables, which name modules; bind it to a model: "
                "softnum.torch.convert(model, design)"
            )
        self.state = new_state(seed)
        self.path: list[str | None] = []  # of the modules that are running, the innermost last; None: left to PyTorch
        self.calls: dict[str, int] = {}
        self.replayed = False  # whether `calls` are those of a forward pass that is computed again
        self.model = None  # that is converted to it
        self.kept: set[str] = set()  # its modules that are left to PyTorch
        self.following = False  # whether its parameters have hooks
        self._hooks = WeakIdKeyDictionary()  # parameter -> what makes its gradient one of the role weight_gradients
        self.thread = None  # that a model is running in
        self.frame = None  # of the call that a model is running in
        self.left_over = 0  # how often it is still entered by calls that ended without leaving, as by an interrupt
        # plain facts of the arithmetic, which torch.compile reads
        self.last, self.rounds_output = self.arithmetic.last, self.arithmetic.rounds_output
        self.rounds_gradients = self.arithmetic.rounds_gradients
        self.sums = self.exact and self.arithmetic.adds_gradients
        self.stochastic = {"": self.arithmetic.is_stochastic("")}

    def __getstate__(self) -> dict:
        running = {"thread": None, "frame": None, "left_over": 0, "path": [], "calls": {}}
        return {**self.__dict__, "_hooks": None, "following": False, **running}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, _hooks=WeakIdKeyDictionary())

    def is_over(self) -> bool:
        """Whether the call that a model was running in has ended without leaving, as an interrupt ends it."""
        if self.frame is not None:
            try:
                self.frame.clear()  # which an executing frame refuses
            except RuntimeError:
                return False
            self.left_over += 1
            self.path, self.frame = [], None
        return self.left_over > 0 and not self.path

    def follow(self, parameter: torch.nn.Parameter, path: str, name: str) -> None:
        """Make the gradient of a parameter, in each backward pass, one of its module's role ``weight_gradients``."""
        if self.rounds_gradients and parameter.requires_grad and parameter not in self._hooks:
            self._hooks[parameter] = parameter.register_hook(partial(_gradient, self, path, name))

    def running(self) -> str:
        """The path of the module that is running; "" outside a converted model."""
        return self.path[-1] if self.path else ""

    def apply(self, name: str, inputs: list[torch.Tensor], part: str = "", options=(), constants=()) -> torch.Tensor:
        """A function in the arithmetic of the module that is running, or of a part of it."""
        layer = f"{self.running()}.{part}" if part else self.running()
        if self.rounds_gradients and not torch.compiler.is_compiling():
            self._check_transforms(layer)
        sites, handle = self.arithmetic.sites, self.arithmetic.handle
        call = self._next_call(layer) if sites is None else sites.next
        if self.sums:
            self._check_sums(layer)
            inputs = [used(x) for x in inputs]
        result = apply(name, inputs, self.state, handle, layer, call, options, constants)
        if self.sums and name in ELEMENTWISE:
            first, *rest = result if isinstance(result, tuple) else (result,)
            first = summed(first, self, layer)
            result = (first, *rest) if rest else first
        if not self.rounds_output or layer != self.last or name not in ("linear", "conv2d"):
            return result
        call = call if sites is None else sites.next
        return apply("output", [result], self.state, handle, layer, call)

    def _check_sums(self, layer: str) -> None:
        """Raise NotImplementedError where gradients that meet cannot be added in the design's arithmetic."""
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            raise NotImplementedError(
                f"layer {layer!r}: compilers and transforms add gradients in PyTorch's way, and design "
                f"{self.arithmetic.design.name!r} adds them in another format than binary32; use eager mode, or "
                "elementwise='torch'"
            )

    def _check_transforms(self, layer: str) -> None:
        """Raise NotImplementedError within a transform whose gradients no hook sees."""
        if any(transform.key() == TransformType.Grad for transform in retrieve_all_functorch_interpreters()):
            raise NotImplementedError(
                f"layer {layer!r}: gradients of torch.func are neither unscaled nor rounded to weight_gradients, which "
                f"design {self.arithmetic.design.name!r} asks for; use backward(), or a design without"
            )

    def _next_call(self, layer: str) -> int:
        if layer not in self.stochastic:
            self.stochastic[layer] = self.arithmetic.is_stochastic(layer)
        if not self.stochastic[layer]:
            return 0
        if not torch.compiler.is_compiling() and not self.replayed and torch._C._current_graph_task_id() != -1:
            raise RuntimeError(
                f"layer {layer!r} rounds stochastically and is computed again in the backward pass, as of a "
                "checkpoint, which does not say which forward pass that was; give it that: "
                "torch.utils.checkpoint.checkpoint(..., use_reentrant=False, "
                "context_fn=softnum.torch.checkpoint_contexts)"
            )
        call = self.calls.get(layer, 0)
        self.calls[layer] = call + 1
        return call

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.path and self.path[-1] is None:  # a module that is left to PyTorch
            return func(*args, **kwargs)
        if self.of_model and not torch.compiler.is_compiling() and self.is_over():
            return func(*args, **kwargs)
        handler = HANDLERS.get(func) or (EXACT.get(func) if self.exact else None)
        if handler is None:
            if self.exact:
                self._check_exact(func, args, kwargs)
            if func in REFUSED or (isinstance(func, (OpOverload, OpOverloadPacket)) and _is_product(func)):
                raise NotImplementedError(
                    f"{getattr(func, '__name__', func)} in module {self.running()!r} computes products that "
                    f"softnum.torch does not; it computes {', '.join(dict.fromkeys(KNOWN))}. Leave the module out "
                    f"(softnum.torch.convert(..., keep={self.running()!r})) or write it with these"
                )
            if not self.sums or torch.compiler.is_compiling() or not torch.is_grad_enabled():
                return func(*args, **kwargs)
            return self._moved(func, args, kwargs)
        if self.rounds_gradients and not self.of_model and not torch.compiler.is_compiling():
            for x in tree_leaves((args, kwargs)):
                if isinstance(x, torch.nn.Parameter):
                    self.follow(x, "", f"parameter {len(self._hooks)}")
        return handler(self, *args, **kwargs)

    def _moved(self, func, args, kwargs):
        """What a function that moves results makes of them, each one use more."""
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "detach", "requires_grad_"):
            return func(*args, **kwargs)
        first = args[0] if args else None
        gradients = getattr(first, "softnum_gradients", None)
        args, kwargs = tree_map_only(torch.Tensor, used, (args, kwargs))
        result = func(*args, **kwargs)
        if gradients is None or name not in KEEPING or not isinstance(result, torch.Tensor):
            return result
        return summed(result, self, gradients.layer)

    def _check_exact(self, func, args, kwargs) -> None:
        """Raise NotImplementedError if a function of PyTorch's computes with numbers."""
        name = getattr(func, "__name__", str(func))
        if name in MOVING or (name == "dropout" and not (args[2:3] or (kwargs.get("training", True),))[0]):
            return
        numbers = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        if numbers:
            raise NotImplementedError(
                f"{name} in module {self.running()!r} has no exact arithmetic in softnum.torch (it has "
                f"{', '.join(dict.fromkeys(getattr(f, '__name__', str(f)) for f in EXACT))}); "
                "state elementwise='torch', which leaves all but products to PyTorch"
            )


def _gradient(mode: arithmetic, path: str, name: str, gradient: torch.Tensor) -> torch.Tensor:
    """The gradient of a parameter, all its uses added, as the design has it."""
    layer = mode.arithmetic.call(path, mode.state, f"gradient.{name}")
    values = array_of(gradient)
    result = layer.parameter_gradient(values)
    layer.end()
    return tensor_of(result, result_dtype(gradient), gradient.device, (values,))


class _Recording:
    """The forward passes within a checkpoint: the first time, what state models began with; the second time, again."""

    def __init__(self) -> None:
        self.began: list[torch.Tensor] = []
        modes = torch.overrides._get_current_function_mode_stack()
        self.running = [(mode, mode.state, list(mode.path), dict(mode.calls)) for mode in modes
                        if isinstance(mode, arithmetic)]  # fmt: skip

    @contextlib.contextmanager
    def recording(self):
        RECORDING.append(self)
        try:
            yield
        finally:
            RECORDING.remove(self)

    @contextlib.contextmanager
    def again(self):
        """Within the checkpoint's function when it is computed again."""
        REPLAYING.append(iter(self.began))
        before = [(mode, mode.state, mode.path, mode.calls, mode.replayed) for mode, *_ in self.running]
        try:
            with contextlib.ExitStack() as stack:
                for mode, state, path, calls in self.running:
                    mode.state, mode.path, mode.calls, mode.replayed = state, list(path), dict(calls), True
                    stack.enter_context(mode)
                yield
        finally:
            REPLAYING.pop()
            for mode, state, path, calls, replayed in before:
                mode.state, mode.path, mode.calls, mode.replayed = state, path, calls, replayed


#: those of the checkpoints whose functions are running, for the first time and again; the innermost last
RECORDING: list[_Recording] = []
REPLAYING: list = []


def checkpoint_contexts() -> tuple:
    """What ``torch.utils.checkpoint`` takes as ``context_fn``: what is computed again has the bits of the first time.

    It is needed where layers round stochastically, or where the checkpoint's function computes products itself, in no
    module of its own.

    Returns
    -------
    contexts : (context manager, context manager)
        Of the forward pass, and of computing it again.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> from torch.utils.checkpoint import checkpoint
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> with st.arithmetic("g-q44-stochastic"):
    ...     y = checkpoint(lambda x: x @ x, x, use_reentrant=False, context_fn=st.checkpoint_contexts)
    >>> y.sum().backward()
    >>> x.grad
    tensor([[4., 4.],
            [4., 4.]])
    """
    recorded = _Recording()
    return recorded.recording(), recorded.again()


# -- the functions -----------------------------------------------------------------------------------------------------


def _linear(mode: arithmetic, input, weight, bias=None, *, part: str = ""):
    if weight.dim() == 1:
        return _linear(mode, input, weight[None], None if bias is None else bias[None], part=part).squeeze(-1)
    inputs = [input, weight] if bias is None else [input, weight, bias]
    return mode.apply("linear", inputs, part)


def _product(mode: arithmetic, input, mat2, *, out=None):
    _refuse(mode, "mm", out=(out, None))
    if input.dim() != mat2.dim() or input.dim() not in (2, 3):
        raise ValueError(f"mm and bmm take matrices, or batches of them, got {tuple(input.shape)}, {tuple(mat2.shape)}")
    return _matmul(mode, input, mat2)


def _matmul(mode: arithmetic, input, other, *, out=None):
    _refuse(mode, "matmul", out=(out, None))
    vectors = input.dim() == 1, other.dim() == 1
    if vectors[0]:
        input = input[None]
    if vectors[1]:
        other = other[:, None]
    if other.dim() == 2:
        result = mode.apply("linear", [input, other.transpose(0, 1)])
    else:
        batch = torch.broadcast_shapes(input.shape[:-2], other.shape[:-2])
        inputs = [x if x.shape[:-2] == batch else x.expand(*batch, *x.shape[-2:]) for x in (input, other)]
        result = mode.apply("matmul", inputs)
    if vectors[0]:
        result = result.squeeze(-2)
    return result.squeeze(-1) if vectors[1] else result


def _addmm(mode: arithmetic, input, mat1, mat2, *, beta=1, alpha=1, out=None):
    _refuse(mode, "addmm", out=(out, None), alpha=(alpha, 1), beta=(beta, 1))
    if input.dim() == 1:
        return mode.apply("linear", [mat1, mat2.transpose(0, 1), input])
    return _sum(mode, input, _matmul(mode, mat1, mat2))


def _baddbmm(mode: arithmetic, input, batch1, batch2, *, beta=1, alpha=1, out=None):
    _refuse(mode, "baddbmm", out=(out, None))
    product = _matmul(mode, batch1, batch2)
    if mode.exact:
        product = product if alpha == 1 else mode.apply("scale", [product], constants=(float(alpha),))
        if beta not in (0, 1):
            input = mode.apply("scale", [input], constants=(float(beta),))
        return product if beta == 0 else _sum(mode, input, product)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else input * beta + product if beta != 1 else input + product


def _sum(mode: arithmetic, x, y):
    return EXACT[torch.add](mode, x, y) if mode.exact else x + y


def _einsum(mode: arithmetic, equation, *operands):
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or len(operands) > 2:
        raise NotImplementedError(
            f"einsum in module {mode.running()!r}: softnum.torch computes products of two operands, stated as a text, "
            f"got {len(operands)} operands; multiply two at a time"
        )
    if len(operands) < 2:
        return torch.einsum(equation, *operands)
    left, arrow, result = equation.replace(" ", "").partition("->")
    a, b = left.split(",")
    if not arrow:
        result = "".join(sorted(x for x in set(a + b) if (a + b).count(x) == 1))
    alone = [x for x in a + b if x not in result and (a + b).count(x) == 1]
    if "." in equation or len(set(a)) < len(a) or len(set(b)) < len(b) or alone:
        raise NotImplementedError(
            f"einsum in module {mode.running()!r}: softnum.torch computes no product with '...', an axis twice in one "
            f"operand, or one that is summed without the other, got {equation!r}"
        )
    batch = [x for x in a if x in b and x in result]
    k = [x for x in a if x in b and x not in result]
    rows, columns = ([x for x in own if x not in other] for own, other in ((a, b), (b, a)))
    first, sizes = (dict(zip(axes, x.shape, strict=True)) for axes, x in zip((a, b), operands, strict=True))
    if any(first.get(axis, size) != size for axis, size in sizes.items()):
        shapes = " and ".join(str(tuple(x.shape)) for x in operands)
        raise ValueError(f"einsum {equation!r}: sizes of {shapes} differ")
    sizes |= first

    def matrices(x, axes: str, first: list[str], second: list[str]):
        shape = [sizes[axis] for axis in batch], math.prod(sizes[x] for x in first), math.prod(sizes[x] for x in second)
        return x.permute([axes.index(axis) for axis in (*batch, *first, *second)]).reshape(*shape[0], *shape[1:])

    product = _matmul(mode, matrices(operands[0], a, rows, k), matrices(operands[1], b, k, columns))
    order = [*batch, *rows, *columns]
    product = product.reshape([sizes[axis] for axis in order])
    return product.permute([order.index(axis) for axis in result])


def _pair(x, rank: int) -> list[int]:
    return [x] * rank if isinstance(x, int) else list(x) * (rank if len(x) == 1 else 1)


def _convolution(rank: int) -> Callable:
    def conv(mode: arithmetic, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        single = input.dim() == rank + 1
        if single:
            input = input[None]
        stride, dilation = _pair(stride, rank), _pair(dilation, rank)
        if padding == "same":
            total = [d * (n - 1) for d, n in zip(dilation, weight.shape[2:], strict=True)]
            odd = [x for n in reversed(total) for x in (0, n % 2)]  # what PyTorch adds on the right and below
            input = F.pad(input, odd) if any(odd) else input
            padding = [n // 2 for n in total]
        padding = [0] * rank if padding == "valid" else _pair(padding, rank)
        if rank == 1:
            input, weight = input.unsqueeze(2), weight.unsqueeze(2)
            stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
        inputs = [input, weight] if bias is None else [input, weight, bias]
        result = mode.apply("conv2d", inputs, options=(groups, *stride, *padding, *dilation))
        result = result.squeeze(2) if rank == 1 else result
        return result[0] if single else result

    return conv


def _embedding(mode: arithmetic, input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
               scale_grad_by_freq=False, sparse=False):  # fmt: skip
    _refuse(
        mode, "embedding", max_norm=(max_norm, None), scale_grad_by_freq=(scale_grad_by_freq, False),
        sparse=(sparse, False),
    )  # fmt: skip
    result = mode.apply("embedding", [input, weight])
    if padding_idx is None:
        return result
    padding_idx = padding_idx % weight.shape[0]
    padded = (input == padding_idx).unsqueeze(-1)
    return torch.where(padded, result.detach(), result)


def _attention(
    mode: arithmetic, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):  # fmt: skip
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    scores = _matmul(mode, query, key.transpose(-2, -1))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if mode.exact:
        return _matmul(mode, _exact_weights(mode, scores, factor, attn_mask, dropout_p, is_causal), value)
    scores = scores * factor
    if is_causal:
        causal = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~causal, -math.inf)
    if attn_mask is not None:
        masked = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if masked else scores + attn_mask
    weights = scores.softmax(-1)
    if attn_mask is not None:  # a row of which nothing is left has the result 0, as of PyTorch's own
        empty = (scores == -math.inf).all(-1, keepdim=True)
        weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    if dropout_p:
        weights = F.dropout(weights, dropout_p)
    return _matmul(mode, weights, value)


def _exact_weights(mode: arithmetic, scores, factor: float, mask, dropout: float, causal: bool):
    if dropout or (mask is not None and mask.dtype is not torch.bool):
        raise NotImplementedError(
            f"scaled_dot_product_attention in module {mode.running()!r}: softnum.torch computes its softmax exactly "
            "with a bool mask and no dropout alone; state elementwise='torch'"
        )
    scores = mode.apply("scale", [scores], constants=(factor,))
    if causal:
        steps = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        mask = steps if mask is None else mask & steps
    if mask is None:
        return mode.apply("softmax", [scores])
    while mask.dim() < scores.dim():
        mask = mask[None]
    return mode.apply("softmax", [scores, mask])


def _multi_head_attention(
    mode: arithmetic, query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True,
    attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
    static_k=None, static_v=None, average_attn_weights=True, is_causal=False,
):  # fmt: skip
    _refuse(
        mode, "multi_head_attention_forward", bias_k=(bias_k, None), bias_v=(bias_v, None),
        add_zero_attn=(add_zero_attn, False), static_k=(static_k, None), static_v=(static_v, None),
    )  # fmt: skip
    if need_weights:
        raise NotImplementedError(
            f"multi_head_attention_forward in module {mode.running()!r}: softnum.torch returns no attention weights; "
            "call the module with need_weights=False"
        )
    single = query.dim() == 2
    if single:
        query, key, value = (x[:, None] for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    steps, batch, features = query.shape
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    elif query is key and key is value:
        q, k, v = _linear(mode, query, in_proj_weight, in_proj_bias, part="in_proj").chunk(3, -1)
        weights = None
    else:
        weights = in_proj_weight.chunk(3)
    if weights is not None:
        parts = zip((query, key, value), weights, biases, strict=True)
        q, k, v = (_linear(mode, *part, part="in_proj") for part in parts)

    def heads(x):
        return x.reshape(x.shape[0], batch, num_heads, -1).permute(1, 2, 0, 3)

    mask = attn_mask
    if mask is not None:  # here True leaves a place out
        mask = ~mask if mask.dtype is torch.bool else mask
        mask = mask.reshape(batch, num_heads, *mask.shape[-2:]) if mask.dim() == 3 else mask
    if key_padding_mask is not None:
        padding = key_padding_mask[:, None, None]
        if padding.dtype is torch.bool and (mask is None or mask.dtype is torch.bool):
            mask = ~padding if mask is None else mask & ~padding
        else:
            zero = torch.zeros((), dtype=q.dtype, device=q.device)
            add = [zero.masked_fill(~x, -math.inf) if x.dtype is torch.bool else x for x in (mask,) if x is not None]
            add.append(zero.masked_fill(padding, -math.inf) if padding.dtype is torch.bool else padding)
            mask = sum(add[1:], add[0])
    dropout = dropout_p if training else 0.0
    result = _attention(mode, heads(q), heads(k), heads(v), mask, dropout, is_causal and attn_mask is None)
    result = result.permute(2, 0, 1, 3).reshape(steps, batch, features)
    result = _linear(mode, result, out_proj_weight, out_proj_bias, part="out_proj")
    return (result[:, 0] if single else result), None


def _grouped(mode: arithmetic, input, mat2, offs=None, bias=None, out_dtype=None):
    """Rows of a matrix, group by group, times the matrix of the group: the experts of a mixture."""
    _refuse(mode, "grouped_mm", bias=(bias, None), out_dtype=(out_dtype, None))
    if input.dim() != 2 or mat2.dim() != 3 or offs is None:
        raise NotImplementedError(
            f"grouped_mm in module {mode.running()!r}: softnum.torch computes rows (M, K) by matrices (groups, K, N) "
            f"with offs=, got {tuple(input.shape)} and {tuple(mat2.shape)}"
        )
    ends = offs.tolist()
    parts = [
        mode.apply("linear", [input[first:end], weight.transpose(0, 1)])
        for first, end, weight in zip([0, *ends], ends, mat2, strict=False)
        if end > first
    ]
    rest = input.new_zeros((input.shape[0] - (ends[-1] if ends else 0), mat2.shape[-1]))
    return torch.cat([*parts, rest])


def _refuse(mode: arithmetic, name: str, **given) -> None:
    """Raise NotImplementedError if an argument is not the one value of it that softnum.torch computes."""
    for argument, (value, only) in given.items():
        if value is not only and not (isinstance(only, (int, float)) and value == only):
            raise NotImplementedError(
                f"{name} in module {mode.running()!r}: softnum.torch computes it with {argument}={only!r} alone, got "
                f"{value if not isinstance(value, torch.Tensor) else 'a tensor'!r}"
            )


_CONV1D, _CONV2D = _convolution(1), _convolution(2)

#: function of PyTorch -> what computes it here
HANDLERS: dict[Callable, Callable] = {
    F.linear: _linear,
    torch.matmul: _matmul,
    torch.Tensor.matmul: _matmul,
    torch.Tensor.__matmul__: _matmul,
    torch.Tensor.__rmatmul__: lambda mode, x, other: _matmul(mode, other, x),
    torch.mm: _product,
    torch.Tensor.mm: _product,
    torch.bmm: _product,
    torch.Tensor.bmm: _product,
    torch.mv: lambda mode, input, vec: _matmul(mode, input, vec),
    torch.Tensor.mv: lambda mode, input, vec: _matmul(mode, input, vec),
    torch.addmm: _addmm,
    torch.Tensor.addmm: _addmm,
    torch.baddbmm: _baddbmm,
    torch.Tensor.baddbmm: _baddbmm,
    torch.einsum: _einsum,
    torch.conv1d: _CONV1D,
    torch.conv2d: _CONV2D,
    F.embedding: _embedding,
    torch.embedding: lambda mode, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False: _embedding(
        mode, indices, weight, None if padding_idx < 0 else padding_idx, scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    ),
    F.scaled_dot_product_attention: _attention,
    F.multi_head_attention_forward: _multi_head_attention,
}  # fmt: skip
HANDLERS.update(RECURRENT)
HANDLERS.update({
    function: _grouped
    for function in (getattr(torch, "_grouped_mm", None), getattr(F, "grouped_mm", None))
    if function is not None
})  # fmt: skip
KNOWN = [getattr(function, "__name__", str(function)) for function in HANDLERS]

_REFUSED_NAMES = {
    torch: """
        addbmm addmv addmv_ addr bilinear cdist chain_matmul cholesky_inverse cholesky_solve conv3d conv_tbc
        conv_transpose1d conv_transpose2d conv_transpose3d convolution corrcoef cosine_similarity cov dot hspmm inner
        inverse matrix_exp matrix_power mkldnn_convolution smm tensordot vdot _addmm_activation _convolution _int_mm
        _scaled_mm _transformer_encoder_layer_fwd _native_multi_head_attention
    """,
    torch.Tensor: """
        addbmm addbmm_ addmm_ addmv addmv_ addr addr_ baddbmm_ cholesky_inverse cholesky_solve corrcoef cov dot inner
        inverse matrix_exp matrix_power smm sspaddmm vdot
    """,
    F: "bilinear embedding_bag linear_cross_entropy scaled_mm scaled_grouped_mm",
    torch.linalg: """
        householder_product inv inv_ex lstsq lu_solve matmul matrix_exp matrix_power multi_dot pinv solve solve_ex
        solve_triangular tensorinv tensorsolve vecdot
    """,
    torch.sparse: "addmm mm sampled_addmm",
    torch._C._nn: "slow_conv3d slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d thnn_conv2d",
}
#: parts of the names of operations, of which there are several for each product
_PRODUCT_NAMES = (
    "addmv", "attention", "bilinear", "conv", "dot", "einsum", "gru", "linear", "lstm", "matmul", "mm", "rnn"
)  # fmt: skip


def _is_product(operation) -> bool:
    """Whether an operation called by its own name, as ``torch.ops.aten.mm``, computes a product of PyTorch's."""
    namespace, _, name = str(operation).partition(".")
    return namespace != "softnum" and any(part in name for part in _PRODUCT_NAMES)


#: functions that compute products, and that softnum.torch does not compute
REFUSED: frozenset[Callable] = frozenset(
    getattr(module, name) for module, names in _REFUSED_NAMES.items() for name in names.split() if hasattr(module, name)
)
