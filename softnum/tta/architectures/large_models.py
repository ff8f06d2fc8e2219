"""The large models that have a name: those of models.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from softnum.tta.architectures.decoders import Decoder

__all__ = ["decoders"]


@cache
def decoders() -> dict[str, Decoder]:
    """The decoders of the shipped table.

    Returns
    -------
    dict of str to Decoder

    Examples
    --------
    >>> decoders()["llama3-70b"].kv_heads
    8
    """
    data = tomllib.loads((Path(__file__).parents[1] / "models.toml").read_text(encoding="utf-8"))
    found = {}
    for name, table in data["decoders"].items():
        sizes = data["families"][table["like"]] | {key: value for key, value in table.items() if key != "like"}
        sizes["source"] = data["sources"][sizes["source"]]
        found[name] = Decoder.from_table(name, sizes, "models.toml: model")
    return found
