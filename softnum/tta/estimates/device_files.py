"""Devices that times are estimated for: the cited table devices.toml, a user's own file, or a design's hardware."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from softnum.runtime.keys import POSITIVE, TEXT, Key, Keys, schema_file, table_of
from softnum.tta.estimates.formats import NATIVE, PEAKS, choose_peak
from softnum.tta.quantities import InputTypeError, bandwidth, byte_size, check_keys, flop_rate, positive_number
from softnum.tta.text import read_text, toml_of
from softnum.tta.workloads.hardware import Hardware

__all__ = ["DEVICE", "Device", "Money", "Peak", "device", "device_schema", "devices"]

_MONEY = Keys({
    "dollars": Key(POSITIVE, "US dollars", needed=True),
    "date": Key(TEXT, "year and month: \"2017-04\"", needed=True),
    "source": Key(TEXT, "who asked for it", needed=True),
    "instance": Key(TEXT, "the machine, where the price is that of one with the device in it"),
})  # fmt: skip
_PEAKS = Keys({key: Key(TEXT, '"125 TFLOP/s", without sparsity') for key in PEAKS})
#: a table of a device
DEVICE = Keys({
    "peaks": Key(_PEAKS.schema(minProperties=1), "rates of matrix products, by the operands' format", needed=True),
    "bandwidth": Key(TEXT, "to memory: \"900 GB/s\"", needed=True),
    "source": Key(TEXT, "where the figures are from, or a short name of [sources]", needed=True),
    "title": Key(TEXT, "its maker's name for it"),
    "vector": Key(TEXT, "rate of what is no matrix product; that of fp32 unless stated"),
    "memory": Key(TEXT, "\"16 GB\""),
    "interconnect": Key(TEXT, "to other devices, both directions together"),
    "watts": Key(POSITIVE, "thermal or board power"),
    "price": Key(_MONEY.schema(), "to buy one"),
    "rent": Key(_MONEY.schema(), "to rent one for an hour"),
    "more": Key(TEXT, "another source"),
    "note": Key(TEXT, "what a reader of the figures has to know"),
})  # fmt: skip
_FILE = Keys({
    "devices": Key(table_of(DEVICE.schema()), "devices by name", needed=True),
    "sources": Key(table_of(TEXT), "long names of sources, by short ones"),
})  # fmt: skip


def device_schema() -> dict:
    """The JSON Schema of a device file.

    >>> device_schema()["required"]
    ['devices']
    """
    return schema_file("softnum devices", _FILE.schema())


@dataclass(frozen=True)
class Peak:
    """The rate at which a device computes an operation at best.

    Parameters
    ----------
    format : str
        The rate's name in the device's table: "fp16"; "vector" of what is no matrix product; "native" of a design's own
        array.
    flops : float
        Operations per second.
    proxy : bool
        Whether the rate is of another format than the operands'.
    reason : str
        Why it stands in.

    Examples
    --------
    >>> device("v100").peak(("e5m2",)).reason
    'no rate for e5m2; fp16 is the narrowest that holds it'
    """

    format: str
    flops: float
    proxy: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Money:
    """An amount in US dollars that somebody asked for a device, and when.

    Parameters
    ----------
    dollars : float
        To buy a device, or to rent one for an hour.
    date : str
        Year and month of the source.
    source : str
        Who says so.
    instance : str
        What is rented, where a price is that of a machine with the device in it.

    Examples
    --------
    >>> device("titan-xp").price.dollars, device("titan-xp").price.date
    (1200.0, '2017-04')
    """

    dollars: float
    date: str
    source: str
    instance: str = ""


@dataclass(frozen=True)
class Device:
    """What a device can do at best.

    Parameters
    ----------
    name : str
        Name in the table.
    peaks : Mapping of str to float
        Operations per second of matrix products: fp64, fp32, tf32, bf16, fp16, fp8, fp4, int8; "native" of a design's
        array.
    bandwidth : float
        Bytes per second to memory.
    source : str
        Where the figures are from.
    title : str
        Its maker's name for it.
    vector : float or None
        Operations per second of what is no matrix product; None if that is the rate of fp32.
    memory : int or None
        Bytes.
    interconnect : float or None
        Bytes per second to other devices, both directions together.
    watts : float or None
        Thermal or board power.
    price, rent : Money or None
        To buy one, and to rent one for an hour.
    note : str
        What a reader of the figures has to know.

    Examples
    --------
    >>> v100 = device("v100")
    >>> v100.peaks["fp16"], v100.bandwidth, v100.ridge("fp16")
    (125000000000000.0, 900000000000.0, 138.88888888888889)
    """

    name: str
    peaks: Mapping[str, float]
    bandwidth: float
    source: str = ""
    title: str = ""
    vector: float | None = None
    memory: int | None = None
    interconnect: float | None = None
    watts: float | None = None
    price: Money | None = field(default=None, repr=False)
    rent: Money | None = field(default=None, repr=False)
    note: str = field(default="", repr=False)

    @classmethod
    def from_table(
        cls, name: str, table: Mapping[str, Any], sources: Mapping[str, str] | None = None, where: str = "device"
    ) -> Device:
        """Read one table of a device file.

        Parameters
        ----------
        name : str
            Name of the device.
        table : Mapping
            `peaks` (``{fp16 = "125 TFLOP/s"}``), `bandwidth` ("900 GB/s") and `source` are required; `memory`,
            `interconnect`, `watts`, `price`, `rent`, `title`, `vector`, `more` (another source) and `note` are not.
        sources : Mapping of str to str, optional
            Long names of sources that tables name by a short one.
        where : str
            What the table is, for error messages.

        Raises
        ------
        TypeError, ValueError
            If a key is missing, unknown, or its value is not of its form.

        Examples
        --------
        >>> table = {"peaks": {"fp8": "1 PFLOP/s"}, "bandwidth": "2 TB/s", "source": "a guess"}
        >>> mine = Device.from_table("mine", table)
        >>> mine.ridge("fp8")
        500.0
        """
        where = f"{where} {name!r}"
        check_keys(table, DEVICE.needed, DEVICE.optional, where)
        check_keys(table["peaks"], _PEAKS.needed, _PEAKS.optional, f"{where} peaks")
        if not table["peaks"]:
            raise ValueError(f"{where} peaks is empty; give at least one of {', '.join(PEAKS)}")
        for key in ("source", "more", "note", "title"):
            if not isinstance(table.get(key, ""), str):
                raise InputTypeError(f"{where} {key} must be a text, got {table[key]!r}")
        known = sources or {}
        cited = [known.get(table[key], table[key]) for key in ("source", "more") if key in table]

        def optional(key, read):
            return read(table[key], f"{where} {key}") if key in table else None

        return cls(
            name,
            {
                key: float(flop_rate(table["peaks"][key], f"{where} peak {key}"))
                for key in PEAKS
                if key in table["peaks"]
            },
            float(bandwidth(table["bandwidth"], f"{where} bandwidth")),
            "; ".join(cited),
            table.get("title", name),
            optional("vector", lambda value, what: float(flop_rate(value, what))),
            optional("memory", byte_size),
            optional("interconnect", lambda value, what: float(bandwidth(value, what))),
            optional("watts", lambda value, what: float(positive_number(value, what))),
            optional("price", lambda value, what: _money(value, known, what)),
            optional("rent", lambda value, what: _money(value, known, what)),
            table.get("note", ""),
        )

    @classmethod
    def of_hardware(cls, hardware: Hardware, name: str = "array") -> Device:
        """A design's own array as a device.

        Every multiplier multiplies and adds once a cycle, or once in the initiation interval that the design states of
        its unit, so the peak is 2 x rows x columns x clock / interval for whatever format the array is built for. Each
        of the three SRAMs has a link of its own to memory, so the bandwidth is three times that of one link; an
        iteration that uses them unevenly cannot reach it.

        Parameters
        ----------
        hardware : Hardware
        name : str
            What to call it.

        Examples
        --------
        >>> from softnum.tta import load_reports
        >>> array = Device.of_hardware(load_reports().designs["a-float32"].hardware)
        >>> array.peaks, array.bandwidth
        ({'native': 2048000000000.0}, 48000000000.0)
        """
        rows, columns = hardware.array
        count = math.prod(hardware.cores)
        arrays = f"array of {rows} x {columns}" if count == 1 else f"{count} arrays of {rows} x {columns}"
        slow = f", a multiply-add every {hardware.interval} cycles" if hardware.interval > 1 else ""
        return cls(
            name, {NATIVE: float(2 * hardware.cells * hardware.clock / hardware.interval)},
            float(3 * hardware.bandwidth),
            "[hardware] of the design", f"{arrays} at {float(hardware.clock / 10**9):g} GHz{slow}",
            note="three links to memory together",
        )  # fmt: skip

    def peak(self, formats: tuple[str, ...] = (), *, gemm: bool = True) -> Peak:
        """The rate of an operation.

        Parameters
        ----------
        formats : tuple of str
            Names of the operands' formats. A matrix product runs at the rate of its operands' format; if there is
            none, at that of the narrowest listed format which holds every finite value of theirs (a proxy). A format
            that only a design file knows runs at the rate of fp32, in which it is emulated (a proxy). Block formats
            count as their elements.
        gemm : bool
            Whether it is a matrix product; everything else runs on the vector units, whatever its formats.

        Returns
        -------
        Peak

        Raises
        ------
        ValueError
            If no listed format holds the operands.

        Examples
        --------
        >>> device("a100-40gb").peak(("e6m9", "e5m2")).reason
        'no rate for e6m9, e5m2; tf32 is the narrowest that holds them'
        >>> device("v100").peak(("binary16",), gemm=False).flops
        15700000000000.0
        """
        if not gemm:
            if self.vector is not None:
                return Peak("vector", self.vector)
            if "fp32" in self.peaks:
                return Peak("vector", self.peaks["fp32"])
            if NATIVE in self.peaks:
                return Peak(NATIVE, self.peaks[NATIVE])
            slowest = min(self.peaks, key=self.peaks.get)
            return Peak(slowest, self.peaks[slowest], True, f"no rate of vector units; that of {slowest} stands in")
        try:
            chosen, proxy, reason = choose_peak(tuple(self.peaks), tuple(formats))
        except ValueError as error:
            raise ValueError(f"device {self.name!r}: {error}") from None
        return Peak(chosen, self.peaks[chosen], proxy, reason)

    def ridge(self, peak: str) -> float:
        """Arithmetic intensity, in FLOPs per byte, from which on a rate and not the bandwidth is the limit."""
        if peak == "vector":
            return self.peak(gemm=False).flops / self.bandwidth
        if peak not in self.peaks:
            raise ValueError(f"device {self.name!r} lists no rate {peak!r}; it has {', '.join(self.peaks)}")
        return self.peaks[peak] / self.bandwidth


def _money(table: Mapping[str, Any], sources: Mapping[str, str], where: str) -> Money:
    check_keys(table, _MONEY.needed, _MONEY.optional, where)
    for key in ("date", "source", "instance"):
        if not isinstance(table.get(key, ""), str):
            raise InputTypeError(f"{where} {key} must be a text, got {table[key]!r}")
    dollars = float(positive_number(table["dollars"], f"{where} dollars"))
    source = sources.get(table["source"], table["source"])
    return Money(dollars, table["date"], source, table.get("instance", ""))


@cache
def _shipped() -> dict[str, Device]:
    return _read((Path(__file__).parents[1] / "devices.toml").read_text(encoding="utf-8"), "devices.toml")


def _read(text: str, where: str) -> dict[str, Device]:
    data = toml_of(text, where, "see softnum/tta/devices.toml for the layout")
    check_keys(data, _FILE.needed, _FILE.optional, where)
    sources = data.get("sources", {})
    for what in ("sources", "devices"):
        if not isinstance(data.get(what, {}), dict):
            raise InputTypeError(f"{where}: [{what}] must be a table, got {data[what]!r}")
    for key, value in sources.items():
        if not isinstance(value, str):
            raise InputTypeError(f"{where}: source {key!r} must be a text, got {value!r}")
    return {
        name: Device.from_table(name, table, sources, f"{where}: device") for name, table in data["devices"].items()
    }


def devices(path: str | os.PathLike[str] | None = None) -> dict[str, Device]:
    """All known devices.

    Parameters
    ----------
    path : path-like, optional
        A device file of your own, in the layout of ``softnum/tta/devices.toml``; its devices come first and replace
        shipped ones of the same name.

    Returns
    -------
    dict of str to Device

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a device file; the message names the table and the key.

    Examples
    --------
    >>> len(devices()), devices()["tpu-v2"].peaks
    (25, {'bf16': 180000000000000.0})
    """
    if path is None:
        return dict(_shipped())
    path = Path(path)
    text = read_text(path, f"no device file {str(path)!r}; expected TOML with tables [devices.NAME]")
    own = _read(text, str(path))
    return {**own, **{name: each for name, each in _shipped().items() if name not in own}}


def device(name: str, path: str | os.PathLike[str] | None = None) -> Device:
    """A device by name.

    Parameters
    ----------
    name : str
        Its name, like "v100"; `devices` lists them.
    path : path-like, optional
        A device file of your own.

    Raises
    ------
    ValueError
        If there is no such device; the message suggests a similar name.

    Examples
    --------
    >>> device("v10")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: unknown device 'v10'; did you mean 'v100'? Known devices: titan-xp, titan-v, gtx-1080-ti, p4000, ...
    """
    known = devices(path)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown device {name!r}; {hint}Known devices: {', '.join(known)}")
    return known[name]
