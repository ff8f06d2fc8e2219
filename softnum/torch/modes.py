"""Functions of PyTorch that compute products, computed in a design's arithmetic: a torch function mode."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path

import torch
from torch._C._functorch import TransformType
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from softnum.torch.exact import ELEMENTWISE, EXACT, KEEPING, MOVING, Final, summed, used
from softnum.torch.handlers import HANDLERS, REFUSED, is_product
from softnum.torch.numerics import Arithmetic, new_state
from softnum.torch.operations import apply
from softnum.torch.recurrent import RECURRENT
from softnum.torch.tensors import array_of, result_dtype, tensor_of
from softnum.train.designs.design import Design

__all__ = ["arithmetic", "checkpoint_contexts"]

_HANDLERS = {**HANDLERS, **RECURRENT}


def name_of(func) -> str:
    """The name of a function of PyTorch's.

    >>> name_of(torch.Tensor.__matmul__), name_of(torch.ops.aten.mm)
    ('__matmul__', 'aten.mm')
    """
    return str(func) if isinstance(func, (OpOverload, OpOverloadPacket)) else getattr(func, "__name__", str(func))


class arithmetic(TorchFunctionMode):
    """Compute the matrix products of PyTorch's functions in a design's arithmetic, inside a ``with`` statement.

    That is: ``linear``, ``matmul`` and ``@``, ``mm``, ``bmm``, ``addmm``, ``baddbmm``, ``einsum`` of two operands,
    ``conv1d`` to ``conv3d`` and transposed ones, ``embedding``, ``scaled_dot_product_attention``,
    ``multi_head_attention_forward``, ``lstm``, ``gru`` and the like. All other functions are PyTorch's own; those that
    would compute products of their own (``bilinear``, ...) raise an error. A result has the dtype of the first operand,
    to which what the accumulator holds is rounded.

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
        self._finals = WeakIdKeyDictionary()  # parameter -> its gradients that are of that role already
        self.thread = None  # that a model is running in
        self.frame = None  # of the call that a model is running in
        self.left_over = 0  # how often it is still entered by calls that ended without leaving, as by an interrupt
        # plain facts of the arithmetic, which torch.compile reads
        self.last, self.rounds_output = self.arithmetic.last, self.arithmetic.rounds_output
        self.rounds_gradients = self.arithmetic.rounds_gradients
        self.sums = self.exact and self.arithmetic.adds_gradients
        self.counting = {"": self.arithmetic.counts_calls("")}

    def __getstate__(self) -> dict:
        running = {"thread": None, "frame": None, "left_over": 0, "path": [], "calls": {}}
        return {**self.__dict__, "_hooks": None, "_finals": None, "following": False, **running}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, _hooks=WeakIdKeyDictionary(), _finals=WeakIdKeyDictionary())

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
            finals = self._finals[parameter] = Final()
            self._hooks[parameter] = parameter.register_hook(partial(_gradient, self, path, name, finals))

    def finals(self, parameter: torch.Tensor) -> Final | None:
        """Where a parameter's gradients are added that are of the role ``weight_gradients`` already.

        None where gradients are neither rounded nor asked for.

        Raises
        ------
        NotImplementedError
            If a compiler asks, or it is none that has a hook.
        """
        if not self.rounds_gradients or not parameter.requires_grad or not torch.is_grad_enabled():
            return None
        if torch.compiler.is_compiling():
            raise NotImplementedError(
                f"module {self.running()!r}: gradients of a recurrent layer's weights are rounded step by step, which "
                "no compiled program does; use eager mode, or elementwise='torch'"
            )
        if parameter not in self._finals:
            raise NotImplementedError(
                f"module {self.running()!r}: weights of a recurrent layer, whose gradients design "
                f"{self.arithmetic.design.name!r} rounds, must be an nn.Parameter of it; state elementwise='torch'"
            )
        return self._finals[parameter]

    def follow_all(self, tensors) -> None:
        """`follow` those of some tensors that are parameters, of no module that is known."""
        if self.rounds_gradients and not torch.compiler.is_compiling():
            for x in tensors:
                if isinstance(x, torch.nn.Parameter):
                    self.follow(x, "", f"parameter {len(self._hooks)}")

    def running(self) -> str:
        """The path of the module that is running; "" outside a converted model."""
        return self.path[-1] if self.path else ""

    def part(self, name: str) -> str:
        """The path of a part of the module that is running, as `convert` names it; of "" that of the module."""
        return ".".join(filter(None, (self.running(), name)))

    def apply(self, name: str, inputs: list[torch.Tensor], part: str = "", options=(), constants=()) -> torch.Tensor:
        """A function in the arithmetic of the module that is running, or of a part of it."""
        layer = self.part(part)
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
        if layer not in self.counting:
            self.counting[layer] = self.arithmetic.counts_calls(layer)
        if not self.counting[layer]:
            return 0
        if not torch.compiler.is_compiling() and not self.replayed and torch._C._current_graph_task_id() != -1:
            raise RuntimeError(
                f"layer {layer!r} rounds stochastically, or by delayed scales, and is computed again in the backward "
                "pass, as of a checkpoint, which does not say which forward pass that was; give it that: "
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
        handler = _HANDLERS.get(func) or (EXACT.get(func) if self.exact else None)
        if handler is None:
            if self.exact:
                self._check_exact(func, args, kwargs)
            if func in REFUSED or (isinstance(func, (OpOverload, OpOverloadPacket)) and is_product(func)):
                raise NotImplementedError(
                    f"{name_of(func)} in module {self.running()!r} computes products that softnum.torch does not; it "
                    f"computes {', '.join(dict.fromkeys(map(name_of, _HANDLERS)))}. Write it with these, or leave it "
                    "to PyTorch: in a module that softnum.torch.convert(..., keep=) names"
                )
            if not self.sums or torch.compiler.is_compiling() or not torch.is_grad_enabled():
                return func(*args, **kwargs)
            return self._moved(func, args, kwargs)
        if not self.of_model:
            self.follow_all(tree_leaves((args, kwargs)))
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
        name = name_of(func)
        if name in MOVING or (name == "dropout" and not (args[2:3] or (kwargs.get("training", True),))[0]):
            return
        numbers = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        if numbers:
            raise NotImplementedError(
                f"{name} in module {self.running()!r} has no exact arithmetic in softnum.torch (it has "
                f"{', '.join(dict.fromkeys(map(name_of, EXACT)))}); "
                "state elementwise='torch', which leaves all but products to PyTorch"
            )


def _gradient(mode: arithmetic, path: str, name: str, finals: Final, gradient: torch.Tensor) -> torch.Tensor:
    """The gradient of a parameter, all its uses added, as the design has it."""
    total = finals.take(gradient, f"{path}.{name}" if path else name)
    if total is not None:
        return total
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
