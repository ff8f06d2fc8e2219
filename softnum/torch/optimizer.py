"""PyTorch's optimisers with every operation of the update rounded as a design says, and the design's loss scale."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from softnum.torch.calls import LOSS_SCALE, bits_of
from softnum.torch.devices import device_of, running
from softnum.torch.models import mode_of, next_step, set_state, state_of
from softnum.torch.tensors import array_of, result_dtype, spread_as, tensor_of, whole
from softnum.train.designs.design import COMPENSATION
from softnum.train.engine.tensor import Parameter
from softnum.train.update.optimisers import SGD, Adam, AdamW, Lion, Muon, Optimiser
from softnum.train.update.scaling import LossScaler

__all__ = ["GradScaler", "Optimizer"]

#: modules whose weights softnum.train lays out as transposes
_TURNED = (nn.Linear, nn.RNNBase, nn.RNNCellBase)
_BETAS, _DECAY = {"betas": ("beta1", "beta2")}, {"weight_decay": "weight_decay"}
#: optimiser of PyTorch -> softnum's, and the names that its constants have there
_KINDS = {
    torch.optim.SGD: (SGD, {"momentum": "momentum", "nesterov": "nesterov", **_DECAY}),
    torch.optim.Adam: (Adam, {"eps": "epsilon", **_BETAS, **_DECAY}),
    torch.optim.AdamW: (AdamW, {"eps": "epsilon", **_BETAS, **_DECAY}),
}
if hasattr(torch.optim, "Muon"):  # since PyTorch 2.9
    _KINDS[torch.optim.Muon] = (Muon, {"momentum": "momentum", **_DECAY})
_LION = Lion, {**_BETAS, **_DECAY}
#: softnum's optimiser -> options of PyTorch's that change the update, with the values that have the same formulas
_FIXED = {
    SGD: {"dampening": (0,), "maximize": (False,)},
    Adam: {"amsgrad": (False,), "maximize": (False,), "decoupled_weight_decay": (False,)},
    AdamW: {"amsgrad": (False,), "maximize": (False,)},
    Muon: {
        "nesterov": (True,), "ns_coefficients": (Muon.coefficients,), "ns_steps": (Muon.rounds,), "eps": (Muon.tiny,),
        "adjust_lr_fn": (None, "original"),
    },
    Lion: {},
}  # fmt: skip


def _kind(optimizer: torch.optim.Optimizer) -> tuple:
    """softnum's optimiser for one of PyTorch's, and the names of its constants."""
    kind, name = _KINDS.get(type(optimizer)), type(optimizer).__name__
    if kind is not None:
        return kind
    if name != "Lion":
        raise TypeError(
            f"softnum.torch has no formulas for {name}; it has {', '.join(known.__name__ for known in _KINDS)}, and "
            "any Lion with the options lr, betas and weight_decay"
        )
    others = sorted(optimizer.defaults.keys() ^ {"lr", *_LION[1]})
    if others or getattr(optimizer, "decoupled_wd", False):
        raise ValueError(
            f"{type(optimizer).__module__}.Lion: softnum's lion has the options lr, betas and weight_decay, and its "
            f"decay is learning rate * weight_decay; got {', '.join(others) or 'decoupled_weight_decay'}"
        )
    return _LION


class Optimizer(torch.optim.Optimizer):
    """An optimiser of PyTorch whose updates are computed as a design says.

    Each operation is rounded to its role (``update.decay``, ``update.momentum``, ...), states to the roles that store
    them and parameters to ``master``: the formulas are those of `softnum.train.SGD`, `Adam`, `AdamW`, `Lion` and
    `Muon`. A step counts as one of the model's (`next_step`). Schedulers and ``state_dict`` work as of the optimiser
    itself.

    Parameters
    ----------
    optimizer : torch.optim.SGD, Adam, AdamW or Muon, or a Lion
        Over the model's parameters: its groups and their constants are taken over. PyTorch has no Lion: any class of
        that name will do whose options are lr, betas and weight_decay.
    model : torch.nn.Module
        A converted one (`convert`).
    counts : bool
        Whether its steps count: of several optimisers of one model, those of the last alone do.

    Raises
    ------
    TypeError
        If there are no formulas for this optimiser.
    ValueError
        If a parameter is none of the model's, or an option asks for another formula.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = st.convert(torch.nn.Linear(2, 1), "a-float32", quiet=True)
    >>> optimizer = st.Optimizer(torch.optim.SGD(model.parameters(), lr=0.5), model)
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> optimizer.step()
    >>> model.softnum_state[1].item()  # steps
    1
    """

    def __init__(self, optimizer: torch.optim.Optimizer, model: nn.Module, *, counts: bool = True) -> None:
        self.rule, self._names = _kind(optimizer)
        self.counts = counts
        if optimizer.state:
            raise ValueError("the optimiser has made steps, whose states are not softnum's; wrap it before the first")
        self.mode, self.model = mode_of(model), model
        self._places = _places(getattr(model, "module", model))
        super().__init__(optimizer.param_groups, optimizer.defaults)

    def add_param_group(self, param_group: dict) -> None:
        """Take on more parameters of the model, with constants of their own."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for option, possible in _FIXED[self.rule].items():
            value = group.get(option, possible[0])
            if (tuple(value) if isinstance(value, list) else value) not in possible:
                raise ValueError(f"{option}={value!r}: softnum's {self.rule.name} has {option}={possible[-1]!r}")
        self.rule([], learning_rate=1.0, **_constants(self._names, group))  # says what is out of range
        for parameter in group["params"]:
            if parameter not in self._places:
                raise ValueError(f"a parameter of shape {tuple(parameter.shape)} is none of the model's")

    def load_state_dict(self, state_dict: dict) -> None:
        """Restore the state of another such optimiser from its ``state_dict()``."""
        known = {"step", "master", COMPENSATION, *self.rule.state_roles}
        for entries in state_dict["state"].values():
            if not known.issuperset(entries):
                raise ValueError(
                    f"states {', '.join(entries)} are not those of softnum's {self.rule.name} "
                    f"({', '.join(sorted(known))}); PyTorch's own mean something else"
                )
        super().load_state_dict(state_dict)
        order = [p for group in self.param_groups for p in group["params"]]
        indices = [index for group in state_dict["param_groups"] for index in group["params"]]
        for parameter, index in zip(order, indices, strict=True):  # PyTorch's casts them to the parameter's dtype
            for name, x in state_dict["state"].get(index, {}).items():
                kept = x.detach().clone().to(parameter.device) if isinstance(x, torch.Tensor) else x
                self.state[parameter][name] = kept

    def made_of(self, parameters: list[Parameter]) -> Optimiser:
        """The optimiser of `softnum.train`, with the constants of the first group, of other parameters."""
        return self.rule(parameters, learning_rate=1.0, **_constants(self._names, self.param_groups[0]))

    @torch.no_grad()
    def step(self, closure=None):
        """Update every parameter that has a gradient, group by group; returns what a closure returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        state = state_of(self.model).cpu()
        for group in self.param_groups:
            constants = _constants(self._names, group)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    with running(parameter.device):
                        self._update(parameter, constants, float(group["lr"]), state)
        if self.counts:
            next_step(self.model)
        return loss

    def _update(self, parameter: nn.Parameter, constants: dict, rate: float, counters: torch.Tensor) -> None:
        path, name, turned = self._places[parameter]
        turned |= self.rule is Muon  # whose matrices have a row for each output in PyTorch
        value, state = whole(parameter), self.state[parameter]
        layer = self.mode.arithmetic.call(path, counters, f"update.{name}", device=device_of(value))
        wide = torch.float64 if layer.backend.dtype == np.float64 else torch.float32

        def array(x: torch.Tensor):
            return array_of((x.T if turned else x).to(wide).contiguous(), layer.device)

        def tensor(x, dtype: torch.dtype) -> torch.Tensor:
            return spread_as(tensor_of(x.T if turned else x, dtype, parameter.device), parameter)

        kept = {entry: whole(x) if isinstance(x, torch.Tensor) else x for entry, x in state.items()}
        if "master" in kept and not torch.equal(kept["master"].to(parameter.dtype), value):
            del kept["master"]  # the parameter was changed since
        own = Parameter(array(kept.get("master", value)), layer, f"{path}.{name}")
        own.gradient = array(whole(parameter.grad))
        rule = self.rule([own], learning_rate=1.0, **constants)
        rule.steps = int(kept.get("step", 0))
        for entry in rule.states:
            if entry in kept:
                rule.states[entry][0] = array(kept[entry])
        rule.step(rate)
        state["step"] = rule.steps
        for entry, (values,) in rule.states.items():
            if values is not None:
                state[entry] = tensor(values, wide)
        if result_dtype(parameter) != wide:  # a dtype that need not hold the role ``master``
            state["master"] = tensor(own.value, wide)
        layer.end()
        parameter.copy_(tensor(own.value, result_dtype(parameter)))


def _constants(names: dict, group: dict) -> dict:
    found = {}
    for theirs, ours in names.items():
        values = group[theirs] if isinstance(ours, tuple) else (group[theirs],)
        found |= zip(ours if isinstance(ours, tuple) else (ours,), values, strict=True)
    return found


def _places(model: nn.Module) -> dict:
    """Parameter -> path of its module, its name there, and whether softnum.train lays it out as a transpose."""
    return {
        parameter: (path, name, isinstance(module, _TURNED) and parameter.dim() == 2)
        for path, module in reversed(list(model.named_modules()))
        for name, parameter in module.named_parameters(recurse=False)
    }


class GradScaler:
    """A design's loss scale, used as ``torch.amp.GradScaler`` is. ``skipped``: whether the last step was left out.

    The gradients that reach an optimiser are unscaled already: the backward pass divides the scale out of those of
    parameters, in binary64, before it rounds them to ``weight_gradients``. So there is no ``unscale_``.

    Parameters
    ----------
    model : torch.nn.Module
        A converted one (`convert`).

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
    >>> model = st.convert(model, "c-wang-fp8", known_as={"1": "fc"}, quiet=True)
    >>> optimizer = st.Optimizer(torch.optim.SGD(model.parameters(), lr=0.5), model)
    >>> scaler = st.GradScaler(model)
    >>> loss = model(torch.ones(1, 2)).square().sum()
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> scaler.get_scale()
    1000.0
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._scaler = LossScaler(mode_of(model).arithmetic.design.loss)
        self.skipped = self._overflow = False
        self._write()

    def _write(self) -> None:
        state = state_of(self.model).clone()
        state[LOSS_SCALE] = bits_of(self._scaler.scale)
        set_state(self.model, state)

    def get_scale(self) -> float:
        """The factor of the loss in this step."""
        return self._scaler.scale

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """A loss times the scale, to call ``backward`` on."""
        if mode_of(self.model).state[LOSS_SCALE].item() != bits_of(self._scaler.scale):
            raise RuntimeError(
                f"the model's last forward pass knew another loss scale than {self._scaler.scale:g}: make the "
                "GradScaler, and load what is to be loaded, before the forward pass whose loss it scales"
            )
        return loss * self._scaler.scale

    def step(self, optimizer: torch.optim.Optimizer):
        """The optimiser's step, unless gradients hold infinities or NaN and the design skips such a step."""
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        self.skipped = self._scaler.skips and not all(bool(whole(part).isfinite().all()) for part in gradients)
        self._overflow |= self.skipped
        if self.skipped:
            if getattr(optimizer, "counts", True):
                next_step(self.model)
            return None
        return optimizer.step()

    def update(self) -> None:
        """Change the scale as the design says, after the step."""
        self._scaler.update(self._overflow)
        self.skipped = self._overflow = False
        self._write()

    def state_dict(self) -> dict:
        """What a resumed run needs: `load_state_dict`."""
        return {"scale": self._scaler.scale, "good": self._scaler.good}

    def load_state_dict(self, state: dict) -> None:
        """Restore the state of another scaler."""
        self._scaler.scale, self._scaler.good = float(state["scale"]), int(state["good"])
        self._write()
