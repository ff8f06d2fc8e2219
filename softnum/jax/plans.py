"""What the handlers compute with: roundings and units, registered under names that follow from what they are."""

from __future__ import annotations

import ctypes
import hashlib
import threading
from dataclasses import dataclass

import numpy as np

from softnum.arrays.environment import source_keys
from softnum.formats.codec import NEAREST, Rounding
from softnum.formats.facts import fits
from softnum.jax.build import library
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.products.engines import counting_of, definition_of, fast_of
from softnum.runtime import _core
from softnum.runtime.threads import default_threads

__all__ = ["Product", "product_of", "rounding_of"]

_NAME = 48  # bytes, as in handlers.c
_SINGLE, _DOUBLE, _CODES = range(3)
_INSTEAD = "outside of jit softnum.{} computes it, on NumPy's arrays"


class _Rounding(ctypes.Structure):
    """softnum_rounding of handlers.c."""

    _fields_ = [
        ("values", ctypes.c_void_p * 2), ("codes", ctypes.c_void_p), ("data", ctypes.c_void_p * 2),
        ("name", ctypes.c_char * _NAME),
    ]  # fmt: skip


class _Product(ctypes.Structure):
    """softnum_product of handlers.c."""

    _fields_ = [
        ("engine", ctypes.c_void_p), ("engine_data", ctypes.c_void_p), ("decode", ctypes.c_void_p),
        ("decoding", ctypes.c_void_p), ("kind", ctypes.c_int64), ("threads", ctypes.c_int64),
    ]  # fmt: skip


class _Plan(ctypes.Structure):
    """softnum_plan of handlers.c."""

    _fields_ = [("name", ctypes.c_char * _NAME), ("of", _Rounding * 4), ("product", _Product)]


@dataclass(frozen=True)
class Product:
    """A unit as calls name it.

    Attributes
    ----------
    name : str
        Of its plan.
    unit : Unit
    dtype : str
        Of results: "float32" where that holds all of them, else "float64".
    """

    name: str
    unit: Unit
    dtype: str


_LOCK = threading.Lock()
_ROUNDINGS: dict[tuple, str] = {}
_PRODUCTS: dict[Unit, Product] = {}
_KEPT: dict[str, list] = {}  # plan -> what its addresses lie in, which lives as long as the process


def _named(*facts) -> str:
    """A name that follows from facts: the same in every process, for programs that JAX keeps."""
    text = "\0".join(map(repr, facts))
    base = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    name, more = base, 0
    while name in _KEPT:  # another arithmetic that shows the same text, as a format of the user's may
        more += 1
        name = f"{base}-{more}"
    return name


def _add(plan: _Plan, name: str, kept: list) -> None:
    plan.name = name.encode()
    loaded = library()
    if not loaded.softnum_jax_add(ctypes.addressof(plan)):
        raise MemoryError("no memory for a plan of softnum.jax")
    _KEPT[name] = kept


def _fill(target: _Rounding, fmt, given: Rounding, kept: list, caller: str) -> None:
    """A format and how numbers are rounded to it."""
    kernels = fmt.codec.kernels(fmt, given)
    pairs = None if kernels is None else kernels.native
    if pairs is None or not pairs[1][0]:
        raise NotImplementedError(
            f"softnum.jax.{caller}: handlers take formats of single numbers to which the core rounds binary64 at once, "
            f"which {fmt}, {given.rounding}, is not; {_INSTEAD.format(caller)}"
        )
    kept.append(kernels)
    target.name = str(fmt).encode()[: _NAME - 1]
    for i, (values, codes, data) in enumerate(pairs):
        target.values[i], target.data[i] = values or None, data
        target.codes = codes or None


def rounding_of(fmt, rounding: str, overflow: str | None, stochastic_bits: int) -> str:
    """The name of the plan of a rounding.

    Raises
    ------
    ValueError
        If the format does not know an option.
    NotImplementedError
        If no handler computes it.

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum.jax.plans import rounding_of
    >>> name = rounding_of(sn.format("e5m2"), "nearest_even", None, 32)
    >>> name == rounding_of(sn.format("e5m2"), "nearest_even", None, 32)
    True
    """
    asked = fmt, rounding, overflow, stochastic_bits
    with _LOCK:
        if asked not in _ROUNDINGS:
            plan, kept = _Plan(), [fmt]
            given = Rounding(rounding, overflow, None, None, stochastic_bits, "raise", False, "after", None)
            _fill(plan.of[3], fmt, given, kept, "quantize")
            name = _named(*asked)
            _add(plan, name, kept)
            _ROUNDINGS[asked] = name
        return _ROUNDINGS[asked]


def _engine(unit: Unit):
    """The engine of a unit that has addresses."""
    if family_of(unit).of_blocks or unit.on_codes:
        kind = "blocks" if family_of(unit).of_blocks else "codes of the user's own functions"
        raise NotImplementedError(
            f"softnum.jax.matmul: {unit!r} multiplies {kind}, and handlers multiply single numbers; "
            f"{_INSTEAD.format('matmul')}"
        )
    for engine in (fast_of(unit), counting_of(unit), definition_of(unit)):
        if hasattr(engine, "native"):
            return engine
    raise NotImplementedError(
        f"softnum.jax.matmul: {unit!r} has no engine that handlers can call; {_INSTEAD.format('matmul')}"
    )


def _check_source(unit: Unit) -> None:
    """NotImplementedError if the unit's random words do not follow from the key as handlers make them."""
    if not unit.stochastic:
        return
    source = unit.random_source
    if source.kind == "given" or source.hart or source_keys(source, (7, 1), (1, 2), "matmul") != (
        *_core.philox_key(7, 1, 1), *_core.philox_key(7, 1, 2)
    ):  # fmt: skip
        raise NotImplementedError(
            f"softnum.jax.matmul: the unit's random bits are {source.name!r}, and handlers make them of a key (seed, "
            f"stream); {_INSTEAD.format('matmul')}"
        )


def product_of(unit: Unit) -> Product:
    """A unit's plan.

    Raises
    ------
    TypeError
        If it is no unit.
    NotImplementedError
        If no handler computes it.

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum.jax.plans import product_of
    >>> product_of(sn.MadUnit("e6m9", operand="e5m2")).dtype
    'float32'
    """
    if not isinstance(unit, Unit):
        raise TypeError(f"softnum.jax.matmul: the unit must be one of softnum's (MadUnit ...), got {unit!r}")
    with _LOCK:
        if unit not in _PRODUCTS:
            _PRODUCTS[unit] = _product(unit)
        return _PRODUCTS[unit]


def _product(unit: Unit) -> Product:
    engine, plan, kept = _engine(unit), _Plan(), [unit]
    _check_source(unit)
    formats = (*unit.operand, unit.c_format, unit.result)
    for target, fmt in zip(plan.of, formats, strict=True):
        _fill(target, fmt, NEAREST, kept, "matmul")
    p, wide = plan.product, getattr(engine, "wide", None)
    p.kind = _CODES if wide is None else _DOUBLE if wide else _SINGLE
    p.engine, p.engine_data = engine.native
    if p.kind == _CODES:
        decoder = _core.Decoder(unit.result, 64)
        decode, p.decoding = decoder.native
        if not decode:
            raise NotImplementedError(
                f"softnum.jax.matmul: results of {unit.result} are no values of binary64; {_INSTEAD.format('matmul')}"
            )
        p.decode = decode
        kept.append(decoder)
    p.threads, dtype = default_threads(), "float32" if fits(unit.result, np.float32) else "float64"
    name = _named(unit)
    _add(plan, name, [*kept, engine])
    return Product(name, unit, dtype)
