"""Functions of PyTorch that compute products, computed in a design's arithmetic: a torch function mode."""

from __future__ import annotations

import contextlib
import math
from functools import partial
from pathlib import Path

import torch
from torch._C._functorch import TransformType
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from softnum.torch.calls import FIRST, OUTER, RANK, ROWS, new_state
from softnum.torch.devices import running
from softnum.torch.exact.tables import BY_NAME, EXACT, KEEPING, MOVING, OPERATIONS
from softnum.torch.functions import ALONG, FUNCTIONS, NUMBERED
from softnum.torch.gradients import Final, assigned, summed, used
from softnum.torch.handlers import HANDLERS, REFUSED, is_product
from softnum.torch.numerics import Arithmetic
from softnum.torch.operations import apply
from softnum.torch.ranks import STEPPED, Axes, check_product, check_rows, check_tiles
from softnum.torch.recurrent import RECURRENT
from softnum.torch.tensors import array_of, result_dtype, tensor_of
from softnum.train.designs.design import ENGINES, Design

__all__ = ["arithmetic", "checkpoint_contexts"]

_HANDLERS = {**HANDLERS, **RECURRENT}
_OPERATORS = OpOverload, OpOverloadPacket  # functions called by their own names


def name_of(func) -> str:
    """The name of a function of PyTorch's.

    >>> name_of(torch.Tensor.__matmul__), name_of(torch.ops.aten.mm)
    ('__matmul__', 'aten.mm')
    """
    return str(func) if isinstance(func, _OPERATORS) else getattr(func, "__name__", str(func))


def _differentiates() -> bool:
    """Whether a transform that differentiates is active."""
    return any(transform.key() == TransformType.Grad for transform in retrieve_all_functorch_interpreters())


class arithmetic(TorchFunctionMode):
    """A context manager: inside it, the matrix products of PyTorch's functions are computed in a design's arithmetic.

    That is: ``linear``, ``matmul`` and ``@``, ``mm``, ``bmm``, ``addmm``, ``baddbmm``, ``einsum`` of two operands,
    ``conv1d`` to ``conv3d`` and transposed ones, ``embedding``, ``scaled_dot_product_attention``,
    ``multi_head_attention_forward``, ``lstm``, ``gru`` and the like. Their results have the dtype of the first operand,
    to which the accumulator is rounded. Other functions that compute products (``bilinear``, ...) raise an error. All
    remaining functions follow ``elementwise``.

    Parameters
    ----------
    design : Design, str, pathlib.Path or Arithmetic
        A design, its file or the name of a shipped one.
    seed : int
        Of stochastic roundings.
    elementwise : str, optional
        How everything except products is computed: "exact", by softnum's operations, rounded as the design states for
        ``elementwise`` and ``statistics``, as in `softnum.train`; functions that it lacks are errors. Or "torch",
        PyTorch's own functions, whose last bits depend on machine and threads. Default: the design's
        ``[elementwise] engine``, which is "exact" where it states none.

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
        self, design: Design | str | Path | Arithmetic, *, seed: int = 0, elementwise: str | None = None
    ) -> None:  # fmt: skip
        super().__init__()
        if elementwise not in (None, *ENGINES):
            raise ValueError(f"elementwise must be {' or '.join(map(repr, ENGINES))}, got {elementwise!r}")
        self.of_model = isinstance(design, Arithmetic)
        self.arithmetic = design if self.of_model else Arithmetic(design)
        self.exact = (elementwise or self.arithmetic.design.engine) == "exact"
        if not self.of_model and self.arithmetic.design.layers:
            raise ValueError(
                f"design {self.arithmetic.design.name!r} has [layers] tables, which name modules; bind it to a model: "
                "softnum.torch.convert(model, design)"
            )
        self.state = new_state(seed)
        self.path: list[str | None] = []  # of the modules that are running, the innermost last; None: left to PyTorch
        self.calls: dict[str, int] = {}
        self.rank: tuple | None = ...  # rank, first sample and samples, as `set_rank` states; ...: it did not
        self.axes: Axes | None = None  # of a forward pass on several ranks
        self.sharing = 0  # the number of the processes that shared the last training pass's batch
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
        running = {"thread": None, "frame": None, "left_over": 0, "path": [], "calls": {}, "axes": None, "rank": ...}
        return {**self.__dict__, "_hooks": None, "_finals": None, "following": False, "sharing": 0, **running}

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
        return ".".join(filter(None, (self.running(), name))) if name else self.running()

    def apply(
        self, name: str, inputs: list[torch.Tensor], part: str = "", options=(), constants=(), axis: int = 0, laid=None
    ) -> torch.Tensor:
        """A function in the arithmetic of the module that is running, or of a part of it.

        axis: of the first input, that of the batch, where what a module was given is laid out anew. laid: of a function
        along rows that does so, the axes of what it was given that are no rows', in the order of the first input.
        """
        layer = self.part(part)
        if self.rounds_gradients and not torch.compiler.is_compiling():
            self._check_transforms(layer)
        sites, handle = self.arithmetic.sites, self.arithmetic.handle
        call = self._next_call(layer) if sites is None else sites.next
        if self.sums:
            self._check_sums(layer)
            inputs = [used(x) for x in inputs]
        state = self.state if self.axes is None else self._state_of(name, layer, inputs, axis, options, laid)
        result = apply(name, inputs, state, handle, layer, call, options, constants)
        if self.sums and FUNCTIONS[name].elementwise:
            first, *rest = result if isinstance(result, tuple) else (result,)
            first = summed(first, self, layer, state, fresh=True)
            result = (first, *rest) if rest else first
        if not self.rounds_output or layer != self.last or name not in ("linear", "conv2d"):
            return result
        call = call if sites is None else sites.next
        return apply("output", [result], state, handle, layer, call)

    def _state_of(self, name: str, layer: str, inputs: list[torch.Tensor], axis: int, options, laid) -> torch.Tensor:
        """The state of one function's call on several ranks: of rows of the batch, or of what all ranks compute."""
        product = FUNCTIONS[name].product
        takes = self.arithmetic.takes_bits(layer, elementwise=not product)
        takes |= name in STEPPED and self.arithmetic.takes_bits(layer, elementwise=False)
        scaled = (product or name in STEPPED) and self.arithmetic.scales_all(layer)
        tiles = self.arithmetic.tiles(layer, name) if name in ("conv2d", "linear", "matmul") else []
        if tiles:
            self._check_tiles(name, layer, inputs, axis, options, tiles)
        if name == "cross_entropy" or not (takes or scaled):
            return self.state[:RANK]
        if takes and name in STEPPED:
            raise NotImplementedError(
                f"{name} in layer {layer!r} rounds stochastically, and its steps, computed exactly in one, are not "
                "numbered by samples on several ranks; round to nearest in this layer, or state elementwise='torch'"
            )
        along = name in ALONG
        if takes and not (product or along) and (name not in NUMBERED or len({x.shape for x in inputs if x.dim()}) > 1):
            raise NotImplementedError(
                f"{name} in layer {layer!r} rounds stochastically, and what spreads or chooses elements, or normalises "
                "a batch, is not numbered by samples on several ranks; let elementwise and statistics round to nearest "
                "in this layer"
            )
        if torch._C._are_functorch_transforms_active():
            raise NotImplementedError(
                f"{name} in layer {layer!r}, which rounds stochastically, or by scales of whole tensors, on several "
                "ranks: transforms of torch.func do not tell the rows of the batch; use backward() and batches"
            )
        if name == "embedding":
            return self.state
        if not (product or name in STEPPED):
            ends = {"group_norm": 1, "avg_pool2d": 1, "max_pool2d": 1} | dict.fromkeys(("dropout", *NUMBERED))
            largest = max(inputs, key=lambda x: x.dim()) if name in NUMBERED else inputs[0]
            laid = laid or list(enumerate(largest.shape[: ends.get(name, -1)]))
            outer = check_rows(name, self.axes, laid, layer, along=along)
        else:
            outer = check_product(name, self.axes, inputs, layer, axis, self.axes.place, numbered=takes)
        if not outer or not takes:
            return self._without_rows()
        if outer == 1:
            return self.state
        state = self.state.clone()
        state[OUTER] = outer
        return state

    def _check_tiles(self, name: str, layer: str, inputs, axis: int, options, tiles: list[int]) -> None:
        """Raise NotImplementedError if numbers of two ranks' samples share a scale of a tile."""
        if not check_product(name, self.axes, inputs, layer, axis, self.axes.place, numbered=False):
            return
        shape, leading = inputs[0].shape, self.axes.met[0] == 0 and axis == 0
        if name == "conv2d":
            made = FUNCTIONS[name].shape([x.shape for x in inputs], FUNCTIONS[name].named(options, ()))
            counts = [len(inputs[0]) * size[-2] * size[-1] for size in (shape, made)]
        else:
            counts = [x.numel() for x in inputs] if name == "matmul" else [math.prod(shape[:-1])]
        check_tiles(tiles, counts, leading, f"{name} in layer {layer!r}", self.axes.place)

    def _without_rows(self) -> torch.Tensor:
        """The state of what takes no random bits of rows."""
        state = self.state.clone()
        state[[FIRST, ROWS]] = 0
        return state

    def assign(self, x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        """x with the numbers of a result, in place."""
        if not self.sums:
            return x.copy_(result)
        if self.axes is not None and self.arithmetic.takes_bits(self.running(), elementwise=True):
            raise NotImplementedError(
                f"a change in place in layer {self.running()!r}, whose gradients are added stochastically, is not "
                "numbered by samples on several ranks; write it without, or let elementwise round to nearest"
            )
        return assigned(x, result, self, self.running(), self.state)

    def replaces(self, name: str) -> bool:
        """Whether an operator of the design replaces a function in the module that is running."""
        return name in self.arithmetic.layer(self.running()).operators

    def _check_sums(self, layer: str) -> None:
        """Raise NotImplementedError where gradients that meet cannot be added in the design's arithmetic."""
        if torch.compiler.is_compiling() or _differentiates():
            raise NotImplementedError(
                f"layer {layer!r}: compilers and transforms add gradients in PyTorch's way, and design "
                f"{self.arithmetic.design.name!r} adds them in another format than binary32; use eager mode, or "
                "elementwise='torch'"
            )

    def _check_transforms(self, layer: str) -> None:
        """Raise NotImplementedError within a transform whose gradients no hook sees."""
        if _differentiates():
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
        if self.axes is None:
            return self._computed(func, args, kwargs)
        return self.axes.follow(name_of(func), func, args, kwargs, partial(self._computed, func, args, kwargs))

    def _computed(self, func, args, kwargs):
        """What a function makes of its arguments."""
        if self.path and self.path[-1] is None:  # a module that is left to PyTorch
            return func(*args, **kwargs)
        handler = _HANDLERS.get(func)
        if handler is None and not self.exact and func not in REFUSED and not isinstance(func, _OPERATORS):
            return func(*args, **kwargs)
        if self.of_model and not torch.compiler.is_compiling() and self.is_over():
            return func(*args, **kwargs)
        if handler is None and self.exact:
            handler = EXACT.get(func)
            if handler is None and isinstance(func, OpOverloadPacket):
                handler = BY_NAME.get(str(func))
        if handler is None:
            if func in REFUSED or (isinstance(func, _OPERATORS) and is_product(func)):
                raise NotImplementedError(
                    f"{name_of(func)} in module {self.running()!r} computes products that softnum.torch does not; it "
                    f"computes {', '.join(dict.fromkeys(map(name_of, _HANDLERS)))}. Write it with these, or leave it "
                    "to PyTorch: in a module that softnum.torch.convert(..., keep=) names"
                )
            if self.exact:
                self._check_exact(func, args, kwargs)
            return self.moved(func, *args, **kwargs)
        if not self.of_model:
            self.follow_all(tree_leaves((args, kwargs)))
        return handler(self, *args, **kwargs)

    def moved(self, func, *args, **kwargs):
        """What a function that moves results makes of them, each one use more."""
        name = getattr(func, "__name__", "")
        if (
            not self.sums or torch.compiler.is_compiling() or not torch.is_grad_enabled()
            or name in ("__get__", "__set__", "detach", "requires_grad_")
        ):  # fmt: skip
            return func(*args, **kwargs)
        first = args[0] if args else None
        inside = (name.endswith("_") and not name.endswith("__")) or name == "__setitem__" or kwargs.get("inplace")
        if inside and first is not None:  # of those that initialise, the tensor stands among the keywords
            changed = used(first).clone()
            func(changed, *tree_map_only(torch.Tensor, used, args[1:]), **kwargs)
            return self.assign(first, changed)
        gradients = getattr(first, "softnum_gradients", None)
        args, kwargs = tree_map_only(torch.Tensor, used, (args, kwargs))
        result = func(*args, **kwargs)
        if gradients is None or name not in KEEPING or not isinstance(result, torch.Tensor):
            return result
        return summed(result, self, gradients.layer, gradients.state, axes=self.axes)

    def _check_exact(self, func, args, kwargs) -> None:
        """Raise NotImplementedError if a function of PyTorch's computes with numbers."""
        name = name_of(func)
        if isinstance(func, _OPERATORS):
            namespace, name = name.split(".")[:2]
            if namespace == "softnum" or name in OPERATIONS:
                return
        if name in MOVING:
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
    device = mode.arithmetic.device_of(gradient, path, mode.state)
    with running(gradient.device, device):
        values = array_of(gradient, device)
        result = mode.arithmetic.unscaled(values, path, mode.state)
        if result is None:
            layer = mode.arithmetic.call(path, mode.state, f"gradient.{name}", device=device)
            result = layer.parameter_gradient(values)
            layer.end()
        return tensor_of(result, result_dtype(gradient), gradient.device, (values,))


class _Recording:
    """The forward passes within a checkpoint: the first time, what state models began with; the second time, again."""

    def __init__(self) -> None:
        self.began: list[tuple] = []  # state and axes
        modes = torch.overrides._get_current_function_mode_stack()
        self.running = [
            (mode, {"state": mode.state, "axes": mode.axes, "path": list(mode.path), "calls": dict(mode.calls)})
            for mode in modes if isinstance(mode, arithmetic)
        ]  # fmt: skip

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
        facts = "state", "axes", "path", "calls", "replayed"
        before = [(mode, {name: getattr(mode, name) for name in facts}) for mode, _ in self.running]
        try:
            with contextlib.ExitStack() as stack:
                for mode, kept in self.running:
                    vars(mode).update(kept, path=list(kept["path"]), calls=dict(kept["calls"]), replayed=True)
                    stack.enter_context(mode)
                yield
        finally:
            REPLAYING.pop()
            for mode, kept in before:
                vars(mode).update(kept)


#: those of the checkpoints whose functions are running, for the first time and again; the innermost last
RECORDING: list[_Recording] = []
REPLAYING: list = []


def checkpoint_contexts() -> tuple:
    """The ``context_fn`` for ``torch.utils.checkpoint`` with which recomputation gives the same bits as the first pass.

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
