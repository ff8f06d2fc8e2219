"""Systems: devices, the links between them, what share of a data sheet they reach, how often they fail."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from softnum.runtime.keys import ANY, NUMBER, TEXT, WHOLE, Key, Keys, either, list_of, schema_file, table_of
from softnum.tta.estimates.device_files import DEVICE, Device, devices
from softnum.tta.parallelism.communication import Communication
from softnum.tta.quantities import InputTypeError, bandwidth, check_keys, duration, positive_int, positive_number
from softnum.tta.text import read_text, toml_of

__all__ = ["EFFICIENCY", "System", "Tier", "read_system", "system", "system_schema", "systems"]

#: Shares of a data sheet that are reached where a system file says nothing, and what of a transfer that could go on
#: while a device computes is not hidden. How they were found: `softnum.tta.parallelism.calibration`.
EFFICIENCY = {
    "fp32": 0.748, "tf32": 0.748, "bf16": 0.748, "fp16": 0.748, "fp8": 0.655, "fp4": 0.507, "attention": 0.288,
    "memory": 0.86, "link": 0.8, "exposed": 0.695, "exposed_expert": 1.0,
}  # fmt: skip
#: Seconds that each operation takes beside its arithmetic and its bytes, found in the same way: an operation here is
#: several kernels there, with what quantizes their operands.
LAUNCH = 59e-6
#: Measured over predicted seconds of steps that no constant was fitted on, by how the steps are halved: the interval
#: that holds `HELD_OUT_CONFIDENCE` of them, both halves together.
HELD_OUT = {"models": (0.532, 1.82), "systems": (0.616, 2.01)}
HELD_OUT_CONFIDENCE = 0.95
_EFFICIENCY = Keys({key: Key(NUMBER, f"{share:g} unless stated") for key, share in EFFICIENCY.items()})
_TIER = Keys({
    "name": Key(ANY, "of the links", needed=True),
    "devices": Key(WHOLE, "devices that they join, those of the tier before included", needed=True),
    "bandwidth": Key(TEXT, "one device's in one direction: \"450 GB/s\"", needed=True),
    "latency": Key(TEXT, "of a step: \"2 us\""),
})  # fmt: skip
#: a table of a system
SYSTEM = Keys({
    "device": Key(either(TEXT, DEVICE.schema()), "name of a device, or a table as of a device file", needed=True),
    "tiers": Key(list_of(_TIER.schema(), 1), "links between devices, the nearest first", needed=True),
    "source": Key(ANY, "where the figures are from", needed=True),
    "title": Key(ANY, "its maker's name for it"),
    "efficiency": Key(_EFFICIENCY.schema(), "shares of a data sheet that are reached"),
    "mtbf": Key(TEXT, "time between failures of a device: \"50000 h\""),
    "storage": Key(TEXT, "bandwidth to where checkpoints go: \"100 GB/s\""),
    "restart": Key(TEXT, "until a run goes on after a failure: \"10 min\""),
    "launch": Key(TEXT, "of each operation: \"59 us\""),
})  # fmt: skip
_FILE = Keys({"systems": Key(table_of(SYSTEM.schema(), 1), "systems by name", needed=True)})
_LENGTHS = {"s": 1, "min": 60, "h": 3600, "d": 86400}


def system_schema() -> dict:
    """The JSON Schema of a system file.

    >>> system_schema()["required"]
    ['systems']
    """
    return schema_file("softnum systems", _FILE.schema())


@dataclass(frozen=True)
class Tier:
    """Links between devices.

    Parameters
    ----------
    name : str
    devices : int
        How many are connected; of the last tier the most that the system can have.
    bandwidth : float
        Bytes per second of each device, in one direction.
    latency : float
        Seconds of a message.

    Examples
    --------
    >>> Tier("NVLink", 8, 450e9, 2e-6).devices
    8
    """

    name: str
    devices: int
    bandwidth: float
    latency: float


@dataclass(frozen=True)
class System:
    """A system of equal devices.

    Parameters
    ----------
    name : str
    device : Device
    tiers : tuple of Tier
        The nearest first; each has a multiple of the devices of the one before.
    efficiency : Mapping
        Keys of `EFFICIENCY`: of matrix products by the rate's name, and those of attention; of memory and links; the
        shares of tensor's and context's and of experts' transfers that are not hidden.
    mtbf : float or None
        Seconds between two failures of one device, in the mean.
    storage : float or None
        Bytes per second to where checkpoints are kept, of the whole system.
    restart : float
        Seconds from a failure until training goes on.
    launch : float
        Seconds that each operation takes besides.
    source : str

    Examples
    --------
    >>> h100 = system("dgx-h100")
    >>> h100.device.name, [tier.devices for tier in h100.tiers]
    ('h100-sxm', [8, 16384])
    """

    name: str
    device: Device
    tiers: tuple[Tier, ...]
    efficiency: Mapping[str, float] = field(default_factory=lambda: dict(EFFICIENCY), repr=False)
    mtbf: float | None = None
    storage: float | None = None
    restart: float = 600.0
    launch: float = LAUNCH
    source: str = field(default="", repr=False)

    @property
    def devices(self) -> int:
        """The most that it can have."""
        return self.tiers[-1].devices

    @classmethod
    def from_table(
        cls, name: str, table: Mapping[str, Any], known: Mapping[str, Device], where: str = "system"
    ) -> System:
        """Read one table of a system file.

        Parameters
        ----------
        name : str
        table : Mapping
            `device` (a name, or a table as in a device file), `tiers` (a list of tables with `name`, `devices`,
            `bandwidth`, and perhaps `latency`), `source`, and perhaps `efficiency`, `mtbf` ("50000 h"), `storage`
            ("100 GB/s") and `restart` ("10 min").
        known : Mapping of str to Device
            Devices by name.
        where : str
            What the table is, for error messages.

        Raises
        ------
        TypeError, ValueError
            If a key is missing, unknown, or its value is not of its form.
        """
        where = f"{where} {name!r}"
        check_keys(table, SYSTEM.needed, SYSTEM.optional, where)
        chosen = table["device"]
        if isinstance(chosen, str):
            if chosen not in known:
                near = difflib.get_close_matches(chosen, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else "; softnum estimate --devices lists them"
                raise ValueError(f"{where}: no device {chosen!r}{hint}")
            chosen = known[chosen]
        elif isinstance(chosen, Mapping):
            chosen = Device.from_table(f"device of {name}", chosen, where=f"{where}:")
        else:
            raise InputTypeError(f"{where}: device must be a name or a table, got {chosen!r}")
        shares = dict(EFFICIENCY)
        own = table.get("efficiency", {})
        check_keys(own, _EFFICIENCY.needed, _EFFICIENCY.optional, f"{where} efficiency")
        for key, value in own.items():
            shares[key] = float(_share(value, f"{where} efficiency {key}", zero=key.startswith("exposed")))
        return cls(
            name, chosen, _tiers(table["tiers"], where), shares,
            _length(table["mtbf"], f"{where} mtbf") if "mtbf" in table else None,
            float(bandwidth(table["storage"], f"{where} storage")) if "storage" in table else None,
            _length(table.get("restart", "10 min"), f"{where} restart"),
            float(duration(table["launch"], f"{where} launch")) if "launch" in table else LAUNCH, str(table["source"]),
        )  # fmt: skip

    def seconds(self, exchange: Communication, size: int, spacing: int) -> float:
        """What an exchange takes in a group.

        A ring passes each of its devices once, and crosses from one unit of a tier to the next as often as the group
        has devices in a unit, over the links of all of these. An all-to-all sends what stays in a unit over its links,
        and the rest over each device's own link to the outside, at the same time; of several copies of a word one for
        each unit that they go to, at random, as DeepEP (DeepSeek-AI, 2025) does.

        Parameters
        ----------
        exchange : Communication
        size, spacing : int
            Devices of the group, and how many numbers lie from one to the next.

        Returns
        -------
        float

        Examples
        --------
        >>> exchange = Communication("fc", "forward", "all_gather", "tensor", 8 * 450_000_000, "bfloat16")
        >>> round(system("dgx-h100").seconds(exchange, 8, 1) * 1e3, 2)  # 7 x 0.45 GB at 0.8 of 450 GB/s
        8.76
        """
        if size == 1:
            return 0.0
        link = self.efficiency["link"]
        span = (size - 1) * spacing + 1
        level = next((n for n, tier in enumerate(self.tiers) if span <= tier.devices), len(self.tiers) - 1)
        if exchange.kind == "send_receive":
            level = next((n for n, tier in enumerate(self.tiers) if spacing < tier.devices), len(self.tiers) - 1)
            tier = self.tiers[level]
            return exchange.bytes / (tier.bandwidth * link) + tier.latency
        inside = [min(size, max(1, tier.devices // spacing)) for tier in self.tiers]
        if exchange.kind == "all_to_all":
            longest, before = 0.0, 1
            for n in range(level + 1):
                here = size if n == level else inside[n]
                units = size / before
                apart = units * (1 - (1 - 1 / units) ** exchange.copies) / exchange.copies if n else 1.0
                part = exchange.bytes * apart * (here - before) / size
                if here > before:
                    longest = max(longest, part / (self.tiers[n].bandwidth * link) + self.tiers[n].latency)
                before = here
            return longest
        rates, latency, before = [], 0.0, 1
        for n in range(level + 1):
            here = size if n == level else inside[n]
            if here > before:
                rates.append(before * self.tiers[n].bandwidth)
                latency += (-(-here // before) - 1) * self.tiers[n].latency
                before = here
        times = 2 if exchange.kind == "all_reduce" else 1
        return float(exchange.sent(size)) / (min(rates) * link) + times * latency


def _share(value: object, what: str, *, zero: bool = False) -> int | float:
    if zero and value == 0 and not isinstance(value, bool):
        return 0
    if positive_number(value, what) > 1:
        raise ValueError(f"{what} must be at most 1, got {value!r}")
    return value


def _length(text: object, what: str) -> float:
    parts = str(text).split()
    if isinstance(text, str) and len(parts) == 2 and parts[1] in ("min", "h", "d"):
        try:
            value = float(parts[0])
        except ValueError:
            value = -1.0
        if 0 < value < inf:
            return value * _LENGTHS[parts[1]]
    if isinstance(text, str) and not (len(parts) == 2 and parts[1] in ("min", "h", "d")):
        return float(duration(text, what))
    raise ValueError(f'{what} must be a number with its unit, like "50000 h", "10 min" or "30 s", got {text!r}')


def _tiers(rows: object, where: str) -> tuple[Tier, ...]:
    if not isinstance(rows, (list, tuple)) or not rows:
        raise InputTypeError(f"{where}: tiers must be a list of tables, the nearest first, got {rows!r}")
    found: list[Tier] = []
    for number, row in enumerate(rows, start=1):
        here = f"{where} tier {number}"
        if not isinstance(row, Mapping):
            raise InputTypeError(f"{here} must be a table, got {row!r}")
        check_keys(row, _TIER.needed, _TIER.optional, here)
        count = positive_int(row["devices"], f"{here} devices")
        if found and (count % found[-1].devices or count == found[-1].devices):
            raise ValueError(
                f"{here} has {count} devices, which are no multiple of the {found[-1].devices} of the one before it"
            )
        latency = float(duration(row["latency"], f"{here} latency")) if "latency" in row else 0.0
        found.append(Tier(str(row["name"]), count, float(bandwidth(row["bandwidth"], f"{here} bandwidth")), latency))
    return tuple(found)


@cache
def _shipped() -> dict[str, System]:
    return _read((Path(__file__).parents[1] / "systems.toml").read_text(encoding="utf-8"), "systems.toml", devices())


def _read(text: str, where: str, known: Mapping[str, Device]) -> dict[str, System]:
    data = toml_of(text, where, "see softnum/tta/systems.toml for the layout")
    check_keys(data, _FILE.needed, _FILE.optional, where)
    if not isinstance(data["systems"], dict) or not data["systems"]:
        raise InputTypeError(f"{where}: [systems] must be a table of systems, got {data['systems']!r}")
    return {name: System.from_table(name, table, known, f"{where}: system") for name, table in data["systems"].items()}


def systems(
    path: str | os.PathLike[str] | None = None, device_file: str | os.PathLike[str] | None = None
) -> dict[str, System]:
    """The systems that are known; those of a file of one's own, of the layout of ``softnum/tta/systems.toml``, first.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is no system file; the message names the table and the key.

    Examples
    --------
    >>> list(systems())[:2]
    ['dgx-a100', 'dgx-h100']
    """
    if path is None:
        return dict(_shipped())
    path = Path(path)
    text = read_text(path, f"no system file {str(path)!r}; expected TOML with tables [systems.NAME]")
    own = _read(text, str(path), devices(device_file))
    return {**own, **{name: each for name, each in _shipped().items() if name not in own}}


def read_system(path: str | os.PathLike[str], device_file: str | os.PathLike[str] | None = None) -> System:
    """The one system of a file.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is no system file, or it has several systems.

    Examples
    --------
    >>> import tempfile
    >>> tier = '{ name = "board", devices = 4, bandwidth = "100 GB/s" }'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.toml")
    ...     _ = file.write_text(f'[systems.mine]\\ndevice = "h100-sxm"\\ntiers = [{tier}]\\nsource = "a guess"\\n')
    ...     read_system(file).devices
    4
    """
    path = Path(path)
    text = read_text(path, f"no system file {str(path)!r}; expected TOML with a table [systems.NAME]")
    own = _read(text, str(path), devices(device_file))
    if len(own) > 1:
        raise ValueError(
            f"{path} has {len(own)} systems: {', '.join(own)}; keep one, or name one with system(name, path)"
        )
    return next(iter(own.values()))


def system(name: str, path: str | os.PathLike[str] | None = None) -> System:
    """One system by name.

    Raises
    ------
    ValueError
        If there is none of the name; the message names the nearest.

    Examples
    --------
    >>> system("dgx-h10")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: unknown system 'dgx-h10'; did you mean 'dgx-h100'? Known systems: dgx-a100, dgx-h100, ...
    """
    known = systems(path)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"unknown system {name!r}; {hint}Known systems: {', '.join(known)}, or a file that ends in .toml"
        )
    return known[name]
