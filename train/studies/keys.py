"""What runs are known by.

A run's *key* is the SHA-256 of its record's first row as canonical JSON. That row states everything the other rows
follow from: the design resolved for every layer, with a checksum of each file that it names; network, optimiser,
schedule and limits; a checksum of every sample of the data; batch, epochs, seed; and the versions of softnum, NumPy,
scikit-learn and Python. Two records with one key have the same bytes.
"""

from __future__ import annotations

import copy
import hashlib
import json

__all__ = ["arithmetic_of", "key_of"]


def key_of(header: dict) -> str:
    """The key of a record's first row.

    >>> key_of({"seed": 1, "config": {}}) == key_of({"config": {}, "seed": 1})
    True
    """
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def arithmetic_of(header: dict) -> str:
    """A key of what the rows after the first follow from: not of a design's name, description and hardware.

    >>> design = {"name": "one", "hardware": {}, "roles": {}}
    >>> one, two = ({"config": {"design": {**design, "name": name}}} for name in ("one", "two"))
    >>> arithmetic_of(one) == arithmetic_of(two), key_of(one) == key_of(two)
    (True, False)
    """
    header = copy.deepcopy(header)
    design = header["config"].get("design")
    if isinstance(design, dict):
        for key in ("name", "description", "hardware"):
            design.pop(key, None)
    for row in header["config"].get("gemms", ()):  # which the unit says, and earlier records do not
        row.pop("function", None)
    return key_of(header)
