"""A user's own energies: a TOML file, whose figures are numbers or stand in an energy reference table of Accelergy's.

The file has the keys of energy.toml for one table. A figure is a number of picojoules, or names an action of the file
``ert``, which Accelergy writes as ERT.yaml (timeloop-mapper.ERT.yaml, ...): a component, an action, and where the table
lists the action several times, its arguments::

    citation = "Accelergy 0.4 of our accelerator, CACTI 7 and Aladdin, run of 3 May"
    process = "a 45 nm process"
    ert = "timeloop-mapper.ERT.yaml"
    fp32 = { mac_pj = "system_top_level.mac compute" }
    sram = [{ bytes = 131072, bits = 64, pj = "system_top_level.shared_glb read",
              write_pj = "system_top_level.shared_glb write" }]
    dram = { bits = 64, pj = "system_top_level.DRAM read", write_pj = "system_top_level.DRAM write" }
    rest = "45nm"

An ERT says no widths, sizes or formats; those are the user's to state: ``bits`` that one action moves, ``bytes`` of the
SRAM, and in which format the multiply-add is. Ranges of instances, ``mac[1..168]``, may be left out of a name.

Sources: reference outputs of Accelergy and of its exercises, versions 0.2 (tables by name) to 0.4 (a list of them);
energies are in picojoules. The summary (ERT_summary.yaml) has averages over arguments and is not read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softnum.runtime.keys import TEXT, Key, Keys, schema_file
from softnum.tta.workloads.energy_prices import ENERGY_TABLES, ENTRY, KEYS, EnergyTable, energy_table, table_of
from softnum.tta.workloads.energy_tables import entry_size

__all__ = ["energy_schema", "read_energy_table", "read_ert"]

_OWN_KEYS = KEYS.without("period_ns", "scaled")  # which energy.toml's have alone
_FILE = Keys({**_OWN_KEYS, "ert": Key(TEXT, "path of Accelergy's ERT.yaml, whose actions figures may name")}, ENTRY)


def energy_schema() -> dict:
    """The JSON Schema of a user's energy table.

    >>> energy_schema()["required"]
    ['citation', 'process']
    """
    return schema_file("softnum energy table", _FILE.schema())


@dataclass(frozen=True)
class _Action:
    """An action of a component, with its arguments, and what it costs."""

    component: str
    name: str
    arguments: Mapping[str, str]
    picojoules: float

    @property
    def text(self) -> str:
        given = "".join(f" {key}={value}" for key, value in self.arguments.items())
        return f"{self.component} {self.name}{given}"


def read_energy_table(source: str | Path) -> EnergyTable:
    """Read energies by the name of a shipped table, or from a user's file.

    Parameters
    ----------
    source : str or path-like
        One of `softnum.tta.workloads.ENERGY_TABLES`, or a file whose name ends in ``.toml``.

    Returns
    -------
    EnergyTable

    Raises
    ------
    ValueError
        If there is no such table or file, or it is not valid: the message names the file and the key, and of an ERT
        the components or actions that there are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.toml")
    ...     _ = file.write_text('citation = "a guess"\\nprocess = "7 nm"\\nfp32 = { mac_pj = 1.5 }')
    ...     read_energy_table(file).entries
    {'fp32': {'mac': 1.5}}
    """
    if not str(source).endswith(".toml"):
        return energy_table(str(source))
    file = Path(source)
    try:
        rows = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"energies of {str(file)!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, brackets too deep
        raise ValueError(f"{file}: not valid TOML: {error}") from error
    for key in rows:
        if key in KEYS and key not in _OWN_KEYS:
            raise ValueError(f"{file}: {key} is a key of shipped tables alone; leave it out")
    ert = rows.pop("ert", None)
    if ert is not None and not isinstance(ert, str):
        raise ValueError(f"{file}: ert must be the path of an ERT.yaml, got {ert!r}")
    found = _Figures(file, None if ert is None else read_ert(file.parent / Path(ert).expanduser()))
    table = table_of(file.stem, {key: found.row(key, row) for key, row in rows.items()}, str(file))
    for entry in table.entries:
        try:
            entry_size(entry)
        except (ValueError, TypeError) as error:
            known = ", ".join(_FILE)
            raise ValueError(f"{file}: unknown key {entry!r}: neither one of {known}, nor a format: {error}") from error
    if table.name in ENERGY_TABLES:
        raise ValueError(f"{file}: has the name of a shipped table; call it something else")
    return table


class _Figures:
    """Puts an ERT's energies where a file names its actions."""

    def __init__(self, file: Path, actions: list[_Action] | None) -> None:
        self.file, self.actions = file, actions

    def row(self, key: str, row: object) -> object:
        if isinstance(row, Mapping):
            return {
                name: self.figure(f"{key}: {name}", value) if name.endswith("pj") else value
                for name, value in row.items()
            }
        return [self.row(key, part) for part in row] if isinstance(row, list) else row

    def figure(self, where: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        where = f"{self.file}: {where}"
        if self.actions is None:
            raise ValueError(f'{where} names {value!r}, and the file names no ert; add ert = "ERT.yaml", or a number')
        words = value.split()
        if len(words) < 2 or not all(re.fullmatch(r"[^=]+=[^=]+", word) for word in words[2:]):
            raise ValueError(f'{where} must be a number, or "COMPONENT ACTION [ARGUMENT=VALUE ...]", got {value!r}')
        component, action, arguments = words[0], words[1], dict(word.split("=") for word in words[2:])
        found = [row for row in self.actions if component in (row.component, _bare(row.component))]
        if not found:
            listed = ", ".join(dict.fromkeys(_bare(row.component) for row in self.actions))
            raise ValueError(f"{where}: the ERT has no component {component!r} (it has {listed})")
        if len({row.component for row in found}) > 1:
            listed = ", ".join(dict.fromkeys(row.component for row in found))
            raise ValueError(f"{where}: {component!r} is several components of the ERT: {listed}; name one of them")
        named = [row for row in found if row.name == action]
        if not named:
            listed = ", ".join(dict.fromkeys(row.name for row in found))
            raise ValueError(f"{where}: {component} has no action {action!r} (it has {listed})")
        fitting = [row for row in named if all(row.arguments.get(key) == text for key, text in arguments.items())]
        if not fitting:
            raise ValueError(f"{where}: {component} has {action!r} only as {named[0].text!r} and the like")
        if len({row.picojoules for row in fitting}) > 1:
            raise ValueError(
                f"{where}: the ERT has {len(fitting)} energies for {value!r}, which differ by arguments; name one, "
                f"such as {fitting[-1].text!r}"
            )
        return fitting[0].picojoules


def _bare(component: str) -> str:
    """A component's name without the ranges of its instances."""
    return re.sub(r"\[[^\]]*\]", "", component)


def read_ert(file: Path) -> list[Any]:
    """The actions of an energy reference table.

    Raises
    ------
    ValueError
        If PyYAML is not installed, or the file cannot be read or is no ERT.
    """
    try:
        import yaml
    except ImportError as error:
        raise ValueError(
            "an ERT.yaml takes PyYAML, which is not installed: pip install 'softnum[accelergy]'"
        ) from error
    try:
        table = yaml.load(Path(file).read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise ValueError(f"the ERT {str(file)!r} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error
    if isinstance(table, Mapping) and any(str(key).startswith(("ERT_summary", "ART")) for key in table):
        key = next(str(key) for key in table if str(key).startswith(("ERT_summary", "ART")))
        raise ValueError(f"{file}: is {key}, not the energy reference table itself; take ERT.yaml of the same run")
    try:
        tables = table["ERT"]["tables"]
        if isinstance(tables, Mapping):  # version 0.2
            rows = [
                (component, name, row)
                for component, actions in tables.items()
                for name, listed in actions.items()
                for row in (listed if isinstance(listed, list) else [listed])
            ]
        else:
            rows = [(part["name"], row["name"], row) for part in tables for row in part["actions"]]
        return [_action(file, *row) for row in rows]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{file}: is no energy reference table of Accelergy's: it has no ERT, tables, actions"
        ) from error


def _action(file: Path, component: str, name: str, row: Mapping[str, Any]) -> _Action:
    energy, arguments = row["energy"], row.get("arguments") or {}
    if isinstance(energy, str):  # YAML 1.1 takes 1e-09 for a text
        energy = _number(energy)
    if isinstance(energy, bool) or not isinstance(energy, (int, float)) or not 0 <= energy < float("inf"):
        raise ValueError(f"{file}: the energy of {component} {name} is {row['energy']!r}, no number of picojoules")
    return _Action(str(component), str(name), {str(key): str(value) for key, value in arguments.items()}, float(energy))


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text
