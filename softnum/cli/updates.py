"""How commands take what updates a network: optimiser, schedule of the learning rate, limits of gradients."""

import dataclasses
import functools
import inspect
import typing
from dataclasses import dataclass
from typing import Annotated

import typer

__all__ = ["Updates", "with_groups"]


@dataclass(frozen=True)
class Updates:
    """Options of a command, in the order of its help; names and meanings are those of `softnum.train.Settings`."""

    optimiser: Annotated[str, typer.Option(help="sgd, adam, adamw, lamb, lars, lion or muon.")] = "sgd"
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--learning-rate", "--lr",
            help="Step size.  [default: sgd 0.1, lars 1, lion 0.0001, muon 0.02, others 0.001]",
        ),
    ] = None  # fmt: skip
    adam_rate: Annotated[
        float | None,
        typer.Option(help=("For muon: step size of AdamW, for all parameters but matrices.  [default: 0.0003]")),
    ] = None
    momentum: Annotated[
        float | None, typer.Option(help=("Momentum of sgd, lars and muon.  [default: 0.9, muon 0.95]"))
    ] = None
    nesterov: Annotated[bool, typer.Option("--nesterov", help="Nesterov's momentum (sgd).")] = False
    beta1: Annotated[
        float | None, typer.Option(help="For adam, adamw, lamb, lion, muon: decay of the mean.  [default: 0.9]")
    ] = None
    beta2: Annotated[
        float | None,
        typer.Option(help="Decay of the mean of squares; for lion, of the state.  [default: 0.999, lion 0.99]"),
    ] = None
    epsilon: Annotated[
        float | None, typer.Option(help="Added to the root of the squares.  [default: 1e-8, lamb 1e-6]")
    ] = None
    trust: Annotated[float | None, typer.Option(help="For lars: the factor of |w| / |g|.  [default: 0.001]")] = None
    weight_decay: Annotated[
        float | None, typer.Option(help="[default: sgd and lars 1e-4, adam and lion 0, others 0.01]")
    ] = None
    schedule: Annotated[
        str, typer.Option(help=("Schedule of the learning rate: constant, step, exponential or cosine."))
    ] = "constant"
    warmup: Annotated[int, typer.Option(help="Iterations in which the rate grows linearly from 0.")] = 0
    decay_every: Annotated[int | None, typer.Option(help="Iterations between steps (step).")] = None
    decay_factor: Annotated[
        float | None, typer.Option(help="Factor at each step (step; default 0.1) or iteration (exponential).")
    ] = None
    final_rate: Annotated[
        float | None, typer.Option(help="For cosine: the final rate, as a fraction of the rate.  [default: 0]")
    ] = None
    clip_norm: Annotated[float | None, typer.Option(help="Scale all gradients down if their joint norm is larger.")] = (
        None
    )
    clip_value: Annotated[float | None, typer.Option(help="Largest size of an element of a gradient.")] = None

    def settings(self) -> dict:
        """Them as keywords of `softnum.train.Settings`."""
        return {**dataclasses.asdict(self), "nesterov": self.nesterov or None}


def with_groups(command):
    """A command whose parameters of dataclasses, like `Updates`, are their fields on the command line.

    Parameters
    ----------
    command : callable
        A typer command. A parameter whose annotation is a dataclass of annotated options gets one of it.

    Returns
    -------
    callable
        Takes the fields by keyword, in the place of the group.

    Examples
    --------
    >>> def command(batch: int = 32, updates: Updates = Updates()):
    ...     return batch, updates.momentum
    >>> list(inspect.signature(with_groups(command)).parameters)[:3]
    ['batch', 'optimiser', 'learning_rate']
    >>> with_groups(command)(batch=64, momentum=0.5)
    (64, 0.5)
    """
    signature, parameters, groups = inspect.signature(command), [], {}
    for parameter in signature.parameters.values():
        if not dataclasses.is_dataclass(parameter.annotation):
            parameters.append(parameter)
            continue
        groups[parameter.name] = kind = parameter.annotation
        hints = typing.get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(field.name, parameter.kind, default=field.default, annotation=hints[field.name])
            for field in dataclasses.fields(kind)
        ]

    @functools.wraps(command)
    def wrapped(**options):
        for name, kind in groups.items():
            own = {field.name for field in dataclasses.fields(kind)} & set(options)
            options[name] = kind(**{field: options.pop(field) for field in own})
        return command(**options)

    wrapped.__signature__ = signature.replace(parameters=parameters)
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped
