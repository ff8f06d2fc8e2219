"""Rounding of tensors to a format, differentiable."""

from __future__ import annotations

import numpy as np
import torch

from softnum.arrays import conversion
from softnum.arrays.container import array
from softnum.formats.blocks import BlockFormat, format
from softnum.torch.devices import device_of, running
from softnum.torch.tensors import array_of, result_dtype, tensor_of
from softnum.train.engine.binary64 import host

__all__ = ["quantize"]

_GRADIENTS = ("straight_through", "masked")
_LIBRARY = torch.library.Library("softnum", "FRAGMENT")
_LIBRARY.define(
    "quantize(Tensor x, str format, str rounding, str overflow, str scale_rule, int axis, int stochastic_bits, "
    "int[] key, bool masked) -> Tensor"
)
#: name by which operations know a format -> it, of those that have none of their own
_FORMATS: dict[str, object] = {}


def quantize(
    x: torch.Tensor, fmt, *, rounding: str = "nearest_even", overflow: str | None = None,
    scale_rule: str | None = None, axis: int = -1, key: tuple[int, int] | None = None, stochastic_bits: int = 32,
    gradient: str = "straight_through",
) -> torch.Tensor:  # fmt: skip
    """Round numbers to a format and return a tensor of the same dtype: `softnum.quantize` for PyTorch.

    Overflow is as in `softnum.quantize`, with one exception: e4m3fn saturates, infinities too, unless ``overflow`` says
    otherwise, as PyTorch's own cast to ``torch.float8_e4m3fn`` does since version 2.13.

    Parameters
    ----------
    x : torch.Tensor
    fmt : Format, BlockFormat, torch.dtype or str
    rounding, overflow, scale_rule, stochastic_bits : optional
        As in `softnum.quantize`, and of block formats in `softnum.encode`.
    axis : int
        Along which the blocks of a block format run.
    key : int, (int, int) or Stream, optional
        Of a stochastic rounding's random bits.
    gradient : str
        "straight_through": the result's gradient is x's. "masked": it is 0 where x lies above the largest number of the
        format or below the most negative one, and where it is NaN. Scales of blocks are constants in either.

    Returns
    -------
    torch.Tensor

    Raises
    ------
    ValueError
        If the dtype of x does not hold the format's numbers, or an option is none of the format's.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> x = torch.tensor([0.3, 1000.0], requires_grad=True)
    >>> y = st.quantize(x, torch.float8_e4m3fn, gradient="masked")
    >>> y.sum().backward()
    >>> y.tolist(), x.grad.tolist()
    ([0.3125, 448.0], [1.0, 0.0])
    """
    if gradient not in _GRADIENTS:
        raise ValueError(f"gradient must be one of {', '.join(_GRADIENTS)}, got {gradient!r}")
    if rounding.startswith("stochastic") and key is None:
        raise ValueError(f"rounding {rounding!r} takes random bits; state key=(seed, stream)")
    name = fmt if isinstance(fmt, str) else _name_of(format(fmt))
    how = (
        name, rounding, overflow or "", scale_rule or "", axis, stochastic_bits, _signed(key), gradient == "masked"
    )  # fmt: skip
    return torch.ops.softnum.quantize(x, *how) if torch.compiler.is_compiling() else _Quantize.apply(x, how)


def _signed(key) -> list[int]:
    """A key as operations take it: two integers of 64 bits, with signs."""
    if key is None:
        return []
    seed, stream = key if isinstance(key, (tuple, list)) else (key, 0)
    if not all(isinstance(x, int) and 0 <= x < 1 << 64 for x in (seed, stream)):
        raise ValueError(f"key must be (seed, stream), integers in 0..2**64-1, got {key!r}")
    return [x - (1 << 64) if x >> 63 else x for x in (seed, stream)]


def _name_of(fmt) -> str:
    name = str(fmt)
    try:
        own = format(name) == fmt
    except ValueError:
        own = False
    if not own:
        name = f"{name} {hash(fmt)}"
        _FORMATS[name] = fmt
    return name


def _format_of(name: str):
    return _FORMATS[name] if name in _FORMATS else format(name)


def _checked(x, name: str, masked: bool):
    """The format of a name, of which a tensor's dtype must hold every value."""
    fmt = _format_of(name)
    block = isinstance(fmt, BlockFormat)
    if block and masked:
        raise ValueError(f"gradient='masked' takes a format of single numbers; blocks of {fmt} have no fixed range")
    if format(result_dtype(x)).contains(fmt.element if block else fmt) is False:
        raise ValueError(f"a tensor of {x.dtype} does not hold every value of {fmt}; convert it: x.float(), x.double()")
    return fmt


def _run(x, name, rounding, overflow, scale_rule, axis, stochastic_bits, key, masked):
    with running(x.device):
        return _rounded(x, _checked(x, name, masked), rounding, overflow, scale_rule, axis, stochastic_bits, key)


def _rounded(x, fmt, rounding, overflow, scale_rule, axis, stochastic_bits, key):
    values = array_of(x, device_of(x))
    if not overflow and fmt == format("e4m3fn"):
        overflow = "saturate"
    own_key = tuple(x % (1 << 64) for x in key) or None
    options = {"rounding": rounding, "overflow": overflow or None, "stochastic_bits": stochastic_bits, "key": own_key}
    given = values if isinstance(values, np.ndarray) else values.numba
    if isinstance(fmt, BlockFormat):
        rounded = array(given, fmt, axis=axis, scale_rule=scale_rule or None, **options).decode()
    else:
        rounded = conversion.quantize(given, fmt, **options)
    if given is not values:
        rounded = type(values).of(rounded, values.shape)
    result = tensor_of(rounded, result_dtype(x), x.device, (values,))
    if isinstance(fmt, BlockFormat) and not np.array_equal(host(array_of(result)), host(rounded), equal_nan=True):
        raise ValueError(
            f"a tensor of {x.dtype} does not hold these numbers of {fmt}; convert it: x.float(), x.double()"
        )
    return result


def _like(x, name, *arguments):
    _checked(x, name, arguments[-1])
    return x.new_empty(x.shape, dtype=result_dtype(x))


def _keep(ctx, inputs, output):
    x, ctx.name, *_, masked = inputs
    ctx.masked = masked
    ctx.save_for_backward(*((x,) if masked else ()))


def _gradient(ctx, gradient):
    if ctx.masked:
        (x,), fmt = ctx.saved_tensors, _format_of(ctx.name)
        gradient = torch.where((x >= float(fmt.min)) & (x <= float(fmt.max)), gradient, 0.0)
    return gradient, *(None,) * 8


class _Quantize(torch.autograd.Function):
    """The operation as transforms of functions take it."""

    @staticmethod
    def forward(x, how):
        return torch.ops.softnum.quantize(x, *how)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, how = inputs
        _keep(ctx, (x, *how), output)

    @staticmethod
    def backward(ctx, gradient):
        return _gradient(ctx, gradient)[0], None

    @staticmethod
    def jvp(ctx, *tangents):
        raise NotImplementedError(
            "softnum's quantize has no forward-mode derivative; use reverse mode (torch.func.vjp, jacrev, grad)"
        )

    @staticmethod
    def vmap(info, in_dims, x, how):
        *rest, key, masked = how
        keys = [[*key[:1], key[1] ^ (index + 1 << 32)] if key else key for index in range(info.batch_size)]
        parts = [
            _Quantize.apply(part, (*rest, own, masked))
            for part, own in zip(x.unbind(in_dims[0]), keys, strict=True)
        ]  # fmt: skip
        return torch.stack(parts), 0


_LIBRARY.impl("quantize", _run, "CompositeExplicitAutograd")
torch.library.register_fake("softnum::quantize", _like, lib=_LIBRARY)
torch.library.register_autograd("softnum::quantize", _gradient, setup_context=_keep, lib=_LIBRARY)
