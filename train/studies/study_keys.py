"""The tables of a study's file: keys that the reader takes, and the JSON Schema of them."""

from __future__ import annotations

import dataclasses
import inspect

from softnum.runtime.keys import (
    ANY,
    FLAG,
    NUMBER,
    POSITIVE,
    TEXT,
    WHOLE,
    Key,
    Keys,
    either,
    list_of,
    one_of,
    schema_file,
    suggest,
    table_of,
    text,
)  # fmt: skip
from softnum.train.designs.keys import HARDWARE
from softnum.train.nets import NETWORKS
from softnum.train.runs.settings import Settings
from softnum.tta.workloads.energy_prices import ENERGY_TABLES

__all__ = ["DATAFLOWS", "KEYS", "READING", "RULES", "SETTINGS", "SIMULATION", "SIMULATORS", "VARIANTS", "study_schema"]

#: what counts as reached, and what is computed besides time: as softnum.tta.study.outcome_rules takes them
RULES = {
    "metric": str, "direction": str, "reached": str, "smooth": str, "confidence": float, "combine": list, "rent": list,
    "price": list, "energy_table": str,
}  # fmt: skip
_OF_TYPE = {str: TEXT, int: {"type": "integer"}, float: NUMBER, bool: FLAG, list: list_of(TEXT)}
_OF_HINT = {"str": TEXT, "int": {"type": "integer"}, "float": NUMBER, "bool": FLAG}
_RULES_ABOUT = {
    "metric": "field of the records: accuracy unless stated", "direction": "\"lower\" if less is better",
    "reached": "when a run has reached the target: first, consecutive:3, average:5", "smooth": "of curves: ema:0.9",
    "confidence": "level of the intervals: 0.95", "combine": "\"mine+yours=both\"", "rent": "dollars per hour",
    "price": "dollars to buy one", "energy_table": f"{', '.join(ENERGY_TABLES)}, or a file",
}  # fmt: skip
_SEEDS = either(WHOLE, list_of({"type": "integer", "minimum": 0}, 1))
_SHARED = {
    "target": Key(POSITIVE, "what the metric has to reach: 0.95"),
    "seeds": Key(_SEEDS, "how many, or a list: 3"),
    "epochs": Key(WHOLE, "passes over the training samples: 20"),
    "baseline": Key(TEXT, "the design that speed-ups are over: the first"),
    "designs": Key(list_of(TEXT, 1), "shipped designs, or files of yours; \"my.toml@128\": with batch 128"),
    "batches": Key(list_of(WHOLE, 1), "samples per iteration: [32]"),
    "workers": Key(list_of(WHOLE, 1), "that share a batch: [1]"),
    "collectives": Key(table_of(TEXT), "how gradients are summed: ring = \"ring(unit='bfloat16')\""),
    "tune_rates": Key(list_of(NUMBER), "multiples of the learning rate that each design is tried with"),
    "tune_seeds": Key(_SEEDS, "seeds of these trials"),
    **{key: Key(_OF_TYPE[kind], _RULES_ABOUT[key]) for key, kind in RULES.items()},
}  # fmt: skip
#: what updates the networks: fields of `Settings` that a study says
SETTINGS = Keys({
    field.name: Key(_OF_HINT[field.type.partition(" ")[0]])
    for field in dataclasses.fields(Settings)
    if field.name not in ("network", "network_options", "data", "batch", "epochs", "workers", "collective")
})  # fmt: skip
#: of [timings]: for a simulator, and for files in its place
SIMULATORS = ("scalesim", "zigzag")
DATAFLOWS = ("os", "ws", "is")
VARIANTS = {"all": None, "stated": "stated hardware", "equal-area": "equal area"}
SIMULATION = Keys({
    "simulator": Key(one_of(SIMULATORS), "scalesim unless stated"),
    "dataflow": Key(one_of(DATAFLOWS), "output, weight or input stationary: os unless stated"),
    "simulate": Key(FLAG, "run the simulator for designs without a report"),
    "reports": Key(list_of(TEXT), "folders of reports to look in first"),
    "variant": Key(one_of(VARIANTS), "hardware as stated, or of equal area: all unless stated"),
})  # fmt: skip
READING = {"clock": str, "format": str, "warmup": (str, int), "iterations": int, "marker": str}
_READING = {
    "clock": "for times in cycles: \"1 GHz\"", "format": "of the files (softnum timings --formats)",
    "warmup": "iterations at the beginning that are left out", "iterations": "in all", "marker": "of an iteration",
}  # fmt: skip
_FILES = table_of(TEXT, 1)
_TIMINGS = SIMULATION | {
    "file": Key(TEXT, "times, in place of a simulator's"),
    "files": Key(_FILES, "a file of each design"),
    **{
        key: Key(_OF_TYPE[kind] if isinstance(kind, type) else either(*(_OF_TYPE[k] for k in kind)), _READING[key])
        for key, kind in READING.items()
    },
}
_HARDWARE = HARDWARE.without("unit")  # which is one design's own
_NETWORKS = Keys({
    "name": Key(suggest(NETWORKS), "of a network, or file.py:function", needed=True),
    "data": Key(TEXT, "name of a data set"),
    "options": Key({"type": "object"}, "the network's own parameters"),
    "timings": Key(either(TEXT, _FILES), "times of this network"),
    "hardware": Key(_HARDWARE.schema(), "of this network alone"),
    **_SHARED, **SETTINGS,
})  # fmt: skip
#: table -> its keys; "" is the file itself
KEYS = {
    "study": Keys({"name": Key(text(r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"), "names its folder"), **_SHARED}),
    "networks": _NETWORKS,
    "settings": SETTINGS,
    "hardware": _HARDWARE,
    "timings": _TIMINGS,
    "report": Keys({"html": Key(FLAG, "write report.html of the whole study")}),
}
_ABOUT = {
    "study": "of all networks", "networks": "what is trained, each beside what the study says of all",
    "settings": "what updates the networks", "hardware": "replaces the same keys of every design's [hardware]",
    "timings": "seconds per iteration", "report": "what is written at the end",
}  # fmt: skip
KEYS[""] = Keys({
    table: Key(list_of(keys.schema(), 1) if table == "networks" else keys.schema(), _ABOUT[table], table == "networks")
    for table, keys in KEYS.items()
})  # fmt: skip


def study_schema() -> dict:
    """The JSON Schema of a study's file.

    >>> study_schema()["required"]
    ['networks']
    """
    schema = schema_file("softnum study", KEYS[""].schema())
    of_networks = schema["properties"]["networks"]["items"]
    of_networks["allOf"] = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"properties": {"options": Keys(_parameters(make)).schema()}},
        }
        for name, make in NETWORKS.items()
    ]
    stated = {"required": ["designs"]}  # for all networks, or for each
    schema["anyOf"] = [
        {"properties": {"study": stated}, "required": ["study"]},
        {"properties": {"networks": {"items": stated}}},
    ]
    return schema


def _parameters(make) -> dict[str, Key]:
    return {name: Key(ANY) for name in inspect.signature(make).parameters}
