"""Whole models in a design's arithmetic."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from softnum.torch.calls import EVALUATING, EVALUATIONS, FORWARDS, LOSS_SCALE, STEP, new_state
from softnum.torch.devices import device_of, running
from softnum.torch.modes import RECORDING, REPLAYING, arithmetic
from softnum.torch.numerics import Arithmetic, arithmetic_of
from softnum.torch.ranks import Axes, place_of
from softnum.torch.recurrent import parts_of
from softnum.torch.tensors import array_of, result_dtype, spread_as, tensor_of, whole
from softnum.train.designs.design import Design
from softnum.train.engine.numerics import fits_binary32
from softnum.train.recipes import Delayed

__all__ = ["KEPT", "convert", "host_copies", "mode_of", "next_step", "set_rank", "set_state", "state_of"]

#: modules whose products are PyTorch's own unless the caller says otherwise: angles of positions, no part of training
KEPT = r"(.*\.)?(rotary_emb|rotary_pos_emb|rope)"
_STATE, _SCALE = "softnum_state", "softnum_scale."
#: modules whose functions compute products that softnum.torch does not
_REFUSED = (nn.Bilinear, nn.EmbeddingBag)
#: modules whose products are layers of their own: kind -> their names below the module's path
_PARTED = {
    nn.MultiheadAttention: lambda module: ["in_proj"],
    nn.RNNBase: parts_of,
    nn.RNNCellBase: parts_of,
}
_PRODUCTS = (nn.Linear, nn.modules.conv._ConvNd, nn.Embedding, *_PARTED)


def convert(
    model: nn.Module, design: Design | str | Path, *, seed: int = 0, first: str | None = ..., last: str | None = ...,
    known_as: dict[str, str] | None = None, keep: str = KEPT, elementwise: str | None = None,
    program_order: bool = False, quiet: bool = False,
) -> nn.Module:  # fmt: skip
    """Convert a model in place, so that it computes forward and backward passes in a design's arithmetic.

    No module is replaced, and no name changes; parameters are rounded to the role ``master`` of their module, in place,
    and a buffer ``softnum_state`` is added. Whenever it or one of its modules
    is called, what they compute by functions of PyTorch is computed as `arithmetic` says, each module as the design
    says for a layer with the module's path as its name. Of ``nn.MultiheadAttention`` at ``p``, the projections are the
    layers ``p.in_proj`` and ``p.out_proj``, the products of queries, keys and values the layer ``p``; of ``nn.LSTM``,
    ``nn.GRU`` and ``nn.RNN``, the products with the input and with the state are ``p.ih_l0``, ``p.hh_l0``, and so on.

    Parameters
    ----------
    model : torch.nn.Module
    design : Design, str or pathlib.Path
        A design, its file or the name of a shipped one.
    seed : int
        Seed of stochastic roundings: 0 to 2**64 - 1.
    first, last : str or None
        The paths of the layer that takes the model's input, whose operand has the role ``input``, and of the one that
        delivers its result, which is rounded to ``output``; None: there is none. Default: the first and the last
        module that owns weights of products, in the order of ``named_modules``, which need not be that of the calls.
    known_as : dict, optional
        Module path -> its name in the design, if that differs.
    keep : str
        A regular expression: modules whose whole path it matches, and all below them, are left to PyTorch.
    elementwise : str, optional
        "exact" or "torch": as of `arithmetic`.
    program_order : bool
        As of `Arithmetic`.
    quiet : bool
        Do not print which modules own weights of products, the other modules, and the first and last layer.

    Returns
    -------
    torch.nn.Module
        The model itself.

    Raises
    ------
    ValueError
        If the model was converted before, a pattern of the design matches no module, a path is none of the model's, or
        parameters have a dtype that cannot hold the design's numbers.
    NotImplementedError
        If a module computes products that softnum.torch does not, and `keep` does not name it.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> model = st.convert(model, "i-mxfp8")
    softnum.torch with i-mxfp8: 2 Linear; other modules: 1 ReLU; first layer '0'; last layer '2'
    >>> model(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    """
    if any(hasattr(part, "_orig_mod") or isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
        raise ValueError("the model is compiled, scripted or traced already; convert it before")
    modules = {path: module for path, module in model.named_modules() if path}
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError(
            "the model's parameters are on the device 'meta' and have no values to round; materialise them first: "
            "model.to_empty(device='cpu'), and its initialisation"
        )
    if any(hasattr(module, _STATE) for module in model.modules()):
        raise ValueError("the model is converted already; convert one that is not (copy it before)")
    kept = {path for path in modules if any(re.fullmatch(keep, part) for part in _above(path))} if keep else set()
    refused = [path for path, module in modules.items() if isinstance(module, _REFUSED) and path not in kept]
    if refused:
        kinds = ", ".join(f"{path!r} ({type(modules[path]).__name__})" for path in refused)
        raise NotImplementedError(
            f"softnum.torch does not compute the products of module {kinds}; name them in keep=, a regular expression, "
            "to leave them to PyTorch"
        )
    computing = {path: module for path, module in modules.items() if path not in kept}
    owners = [path for path, module in computing.items() if _computes(module)]
    if not owners and isinstance(model, _PRODUCTS):
        owners = [""]
    attentions = [path for path, module in computing.items() if isinstance(module, nn.MultiheadAttention)]
    below = [path for path in kept if path.rpartition(".")[0] in attentions]
    if below:
        raise ValueError(
            f"keep={keep!r} names {below[0]!r}, whose products its nn.MultiheadAttention computes; keep that one"
        )
    parts = {
        path: [f"{path}.{name}" if path else name for name in names(module)]
        for path, module in (computing or {"": model}).items()
        for kind, names in _PARTED.items()
        if isinstance(module, kind)
    }
    if first is ...:
        first = parts.get(owners[0], owners)[0] if owners else None
    if last is ...:  # what a recurrent module delivers is no product
        last = owners[-1] if owners and (owners[-1] not in parts or owners[-1] in attentions) else None
    parts = [name for names in parts.values() for name in names]
    bound = Arithmetic(design, first=first, last=last, known_as=known_as, program_order=program_order)
    bound.check_layers([*(computing or [""]), *parts])
    mode = arithmetic(bound, seed=seed, elementwise=elementwise)
    mode.counting = {path: bound.counts_calls(path) for path in ("", *computing, *parts)}
    mode.model, mode.kept = model, kept
    model.register_buffer(_STATE, new_state(seed))
    _round_parameters(mode)
    _follow(mode, model)
    for path, module in ({"": model} | modules).items():
        inside = path not in kept
        module.register_forward_pre_hook(partial(_enter, mode, path, inside), prepend=True, with_kwargs=True)
        module.register_forward_hook(partial(_leave, mode), always_call=True)
    model.register_state_dict_post_hook(partial(_give_scales, mode))
    model.register_load_state_dict_pre_hook(partial(_take_scales, mode))
    model.register_load_state_dict_post_hook(partial(_loaded, mode))
    model.softnum_mode = mode
    if "torch._dynamo" in sys.modules:  # what it compiled before knows nothing of the hooks
        torch._dynamo.reset()
    if not quiet:
        print(_report(bound, modules or {"": model}, owners))
    return model


def _above(path: str):
    """The paths of a module and of those that hold it."""
    names = path.split(".")
    return (".".join(names[: i + 1]) for i in range(len(names)))


def _computes(module: nn.Module) -> bool:
    """Whether a module owns the weights of a product."""
    weight = module._parameters.get("weight")
    return isinstance(module, _PRODUCTS) or (weight is not None and weight.dim() > 1)


def _report(bound: Arithmetic, modules: dict[str, nn.Module], owners: list[str]) -> str:
    computing = Counter(type(modules[path]).__name__ for path in owners)
    left = Counter(
        type(module).__name__
        for path, module in modules.items()
        if path not in owners and not any(other.startswith(f"{path}.") for other in modules)
    )
    found, rest = (
        ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "none" for counts in (computing, left)
    )  # fmt: skip
    design = bound.design
    scaled = design.loss.dynamic or design.loss_scale != 1
    ends = "".join(f"; {name} layer {path!r}" for name, path in (("first", bound.first), ("last", bound.last)) if path)
    hint = "; its loss scale takes a softnum.torch.GradScaler(model)" if scaled else ""
    return f"softnum.torch with {design.name}: {found}; other modules: {rest}{ends}{hint}"


def _round_parameters(mode: arithmetic) -> None:
    """Round a model's parameters to the role ``master`` of their modules, in place."""
    bound, state = mode.arithmetic, getattr(mode.model, _STATE).cpu()
    for path, module in mode.model.named_modules():
        own = [] if path in mode.kept else list(module.named_parameters(recurse=False))
        for name, parameter in own:
            layer = bound.layer(path)
            if parameter.dtype == torch.float32 and not fits_binary32([layer]):
                raise ValueError(
                    f"design {bound.design.name!r} has numbers in module {path!r} that float32 does not hold; convert "
                    "a model of float64: model.double()"
                )
            with running(parameter.device), torch.no_grad():
                device = device_of(parameter)
                values = array_of(whole(parameter), device)
                call = bound.call(path, state, f"master.{name}", device=device)
                rounded = call.round("master", values)
                if rounded is not values:
                    new = tensor_of(rounded, result_dtype(parameter), parameter.device)
                    parameter.copy_(spread_as(new, parameter))


def _follow(mode: arithmetic, module: nn.Module, prefix: str = "") -> None:
    """See to it that every parameter's gradient becomes one of ``weight_gradients``."""
    for path, part in module.named_modules(prefix=prefix) if mode.rounds_gradients else ():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                mode.follow(parameter, path, name)
    mode.following = True


def _give_scales(mode: arithmetic, model: nn.Module, state_dict: dict, prefix: str, *arguments) -> None:
    """What delayed scaling keeps belongs into a state_dict: scale and history of each operand."""
    for place, state in mode.arithmetic.states.items():
        state_dict[f"{prefix}{_SCALE}{'|'.join(place)}"] = torch.from_numpy(np.append(state.scale, state.history))


def _take_scales(mode: arithmetic, model: nn.Module, state_dict: dict, prefix: str, *arguments) -> None:
    """A state_dict of a model that is not converted leaves counters and scales as they are."""
    found = {key: state_dict.pop(key) for key in list(state_dict) if key.startswith(prefix + _SCALE)}
    if prefix + _STATE in state_dict:
        mode.arithmetic.states.clear()
    state_dict.setdefault(prefix + _STATE, getattr(model, _STATE))
    for key, values in found.items():
        scale, *history = values.numpy().copy()
        place = tuple(key.removeprefix(prefix + _SCALE).split("|"))
        mode.arithmetic.states[place] = Delayed(np.array(history), np.array(scale))


def _loaded(mode: arithmetic, model: nn.Module, incompatible) -> None:
    mode.model = model
    _round_parameters(mode)


# -- what happens when a module is called ------------------------------------------------------------------------------


def _enter(mode: arithmetic, path: str, inside: bool, module: nn.Module, arguments, options) -> None:
    """Begin the call of a module; `_leave` ends it whatever this raises."""
    eager = not torch.compiler.is_compiling()
    if eager and mode.path:
        mode.is_over()
    outermost = not mode.path
    mode.path.append(path if inside else None)
    if outermost:
        if eager:
            mode.thread, mode.frame = threading.get_ident(), _calling_frame()
        mode.__enter__()
        _begin(mode, module, mode.model if path else module, (arguments, options))
    elif eager and mode.thread != threading.get_ident():
        raise RuntimeError(
            f"module {path!r} is called while its model runs in another thread; a converted model computes in one "
            "thread at a time, so give each thread a copy (copy.deepcopy)"
        )
    elif eager and hasattr(module, "unshard"):  # of fully_shard, whose parameters are other tensors from here on
        _follow(mode, module, path)


def _calling_frame():
    """That of the module's call, in which the forward pass runs."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name != "_call_impl":
        frame = frame.f_back
    return frame


def _leave(mode: arithmetic, module: nn.Module, arguments, result) -> None:
    mode.path.pop()
    if not mode.path:
        mode.frame = None
        mode.__exit__(None, None, None)
        if result is not None:  # None: the forward pass failed
            _end(mode.model, module.training)
    if inspect.isgenerator(result):
        raise NotImplementedError(
            f"{type(module).__name__}.forward is a generator, which runs after the module has returned: its products "
            "would be PyTorch's; let it return a list"
        )


def _recomputed() -> bool:
    """Whether a forward pass is computed again, in a backward pass."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1


def _only(entry: int, device: torch.device | str) -> torch.Tensor:
    """A state that is 0 but for one entry, which is 1."""
    return torch.tensor([int(entry == i) for i in range(LOSS_SCALE + 1)], dtype=torch.int64, device=device)


def _begin(mode: arithmetic, module: nn.Module, model: nn.Module, arguments) -> None:
    """Begin a forward pass of a model, or of one of its modules alone."""
    mode.model = model
    if _recomputed():
        if REPLAYING:
            mode.state, mode.axes = next(REPLAYING[-1])
            mode.calls, mode.replayed = {}, True
        return
    if mode.rounds_gradients:
        if torch.compiler.is_exporting() and module.training:
            raise NotImplementedError(
                f"design {mode.arithmetic.design.name!r} unscales gradients or rounds them to weight_gradients, which "
                "an exported program does not; export the model in evaluation, model.eval()"
            )
        if not torch.compiler.is_compiling():
            _follow(mode, model)
        elif not mode.following:
            raise RuntimeError("call a copied or loaded model once before it is compiled: its gradients are rounded")
    state = getattr(model, _STATE).cpu()  # where it is read, in every call
    mode.state = state + (0 if module.training else 1) * _only(EVALUATING, "cpu")
    mode.calls, mode.replayed, mode.axes = {}, False, None
    _spread(mode, model, arguments)
    if mode.arithmetic.sites is not None:
        mode.arithmetic.sites.begin(int(state[STEP]), not module.training)
    for recorded in RECORDING:
        recorded.began.append((mode.state, mode.axes))


def _compiled() -> bool:
    """Whether the frames that run are compiled, or would be."""
    return torch.compiler.is_compiling() or torch._C._dynamo.eval_frame.get_eval_frame_callback() is not None


def _spread(mode: arithmetic, model: nn.Module, arguments) -> None:
    """On several ranks, note which rows of the whole batch a forward pass has."""
    bound = mode.arithmetic
    if not any(
        bound.takes_bits(path)
        or bound.scales_all(path)
        or any(bound.tiles(path, name) for name in ("linear", "matmul"))
        for path in mode.counting
    ):
        return
    place = place_of(mode.rank, model, arguments, model.training)
    if model.training:
        mode.sharing = 0 if place is None else place.sharing
    if place is None:
        return
    if _compiled() or mode.arithmetic.sites is not None:
        raise NotImplementedError(
            "on several ranks, rows have the random bits and scales of the whole batch in eager mode alone, and not in "
            "program_order; do not compile the model"
        )
    state = mode.state
    mode.state = torch.cat([state, torch.tensor([*place, 1], dtype=state.dtype, device=state.device)])
    mode.axes = Axes(model, place)


def _end(model: nn.Module, training: bool) -> None:
    """Count a forward pass."""
    if _recomputed():
        return None
    if not torch.compiler.is_compiling() and torch.is_inference_mode_enabled():
        with torch.inference_mode(False):
            return _end(model, training)
    state = getattr(model, _STATE)
    setattr(model, _STATE, state + _only(FORWARDS if training else EVALUATIONS, state.device))
    return None


def mode_of(model: nn.Module) -> arithmetic:
    """The mode that a converted model computes in.

    Raises
    ------
    ValueError
        If the model is not converted.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> mode_of(st.convert(torch.nn.Linear(2, 2), "a-float32", quiet=True)).arithmetic.design.name
    'a-float32'
    """
    mode = getattr(getattr(model, "module", model), "softnum_mode", None)
    if mode is None:
        raise ValueError("the model is not converted: softnum.torch.convert(model, design)")
    return mode


def state_of(model: nn.Module) -> torch.Tensor:
    """The state of a converted model's arithmetic (`softnum.torch.calls`), a buffer of it."""
    mode_of(model)
    return getattr(getattr(model, "module", model), _STATE)


def host_copies(model: nn.Module) -> dict[str, int]:
    """How many arrays were copied from a GPU to the host because no kernel computes what a design asks for.

    Returns
    -------
    dict
        Name of the function or method -> arrays, of all models so converted; empty where kernels compute all.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> st.host_copies(st.convert(torch.nn.Linear(2, 2), "a-float32", quiet=True))
    {}
    """
    return arithmetic_of(mode_of(model).arithmetic.handle).host_copies()


def set_state(model: nn.Module, state: torch.Tensor) -> None:
    """Replace a converted model's state."""
    setattr(getattr(model, "module", model), _STATE, state)


def set_rank(
    model: nn.Module, rank: int | None, *, first: int | None = None, rows: int | None = None, whole: int | None = None,
    group=None,
) -> None:  # fmt: skip
    """Set the rank of a converted model among several ranks that share its batches.

    Random bits of a rank's rows are then those of its place in the whole batch, which has the samples of rank 0 first,
    then those of rank 1, and so on; scales of whole tensors are those of the whole batch. Of a model in
    ``DistributedDataParallel``, or that ``fully_shard`` was called on, this is known without.

    Parameters
    ----------
    model : torch.nn.Module
    rank : int or None
        None: the model computes in one process, which has all of the batch.
    first : int, optional
        The number of samples of the whole batch before those of this rank. Default: rank * rows.
    rows : int, optional
        How many samples this rank has: the leading axis of what a product takes has this length, or a multiple.
        Default: the length of the tensors that the model is called with.
    whole : int, optional
        How many samples the whole batch has, which matters where the batch is not the leading axis.
    group : torch.distributed.ProcessGroup, optional
        The processes that share the batches, which must find the largest magnitude of a whole tensor together. Default:
        all processes.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = st.convert(torch.nn.Linear(2, 2), "g-q44-stochastic", quiet=True)
    >>> x, state = torch.linspace(0, 1, 8).reshape(4, 2), model.softnum_state
    >>> whole = model(x)
    >>> st.set_rank(model, 1)  # of 2
    >>> model.softnum_state = state  # the same forward pass again
    >>> torch.equal(model(x[2:]), whole[2:])
    True
    """
    for name, value, least in (("rank", rank, 0), ("first", first, 0), ("rows", rows, 1), ("whole", whole, 1)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ValueError(f"{name} must be an integer from {least} on, got {value!r}")
    mode_of(model).rank = None if rank is None else (rank, first, rows, whole, group)


def next_step(model: nn.Module) -> None:
    """Count an update of a converted model's parameters: the random bits of the next forward pass are those of a new
    step. `softnum.torch.Optimizer` does so itself.

    >>> import torch, softnum.torch as st
    >>> model = st.convert(torch.nn.Linear(2, 2), "a-float32", quiet=True)
    >>> st.next_step(model)
    >>> model.softnum_state[1].item()
    1
    """
    mode = mode_of(model)
    mode.arithmetic.finish(mode.sharing)
    state = state_of(model).clone()
    state[STEP] += 1
    state[[FORWARDS, EVALUATIONS]] = 0
    set_state(model, state)
