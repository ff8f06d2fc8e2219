"""Counted bins by themselves, as files hold them, and their sum."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softnum.vectors.plans.coverage import Bins, Coverage, text_of
from softnum.vectors.plans.coverages import MixedCoverage

__all__ = ["CoverageFileError", "CoverageRecord", "bins_named", "identifier", "merged", "whole_number"]

_MOST = (1 << 63) - 1


class CoverageFileError(ValueError):
    """A file of coverage that cannot be read, or added to others; the message names it."""


def identifier(text: str) -> str:
    """A name or a label as an identifier of Verilog, Python and XML; numbers get a letter for their sign.

    >>> identifier("exponent of a*b less c's"), identifier("-6"), identifier("6"), identifier("half")
    ('exponent_of_a_b_less_c_s', 'm6', 'p6', 'half')
    """
    text = re.sub(r"^-(?=\d)", "m", text.strip())
    text = "_".join(re.findall(r"\w+", text, re.ASCII)) or "_"
    return f"p{text}" if text[0].isdigit() else text


def _key(text: str) -> str:
    return identifier(text).lower()


def whole_number(value: object, what: str, source: str) -> int:
    """A count that a file states; CoverageFileError unless it is one, of up to 63 bits."""
    text = str(value).strip()
    if isinstance(value, (bool, float)) or not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > _MOST:
        raise CoverageFileError(f"{source}: {what} must be a whole number from 0 to 2**63 - 1, got {value!r:.60}")
    return int(text)


def bins_named(
    name: str, counts: Mapping[str, int], source: str, ignored: Iterable[str] = (), known: bool = True
) -> Bins:
    """`Bins` of labels and counts that a file states; CoverageFileError where labels cannot be told apart."""
    labels, left_out = list(counts), set(ignored)
    if not labels:
        raise CoverageFileError(f"{source}: {name!r:.60} has no bins")
    if len({_key(label) for label in labels}) != len(labels):
        raise CoverageFileError(f"{source}: two bins of {name!r:.60} have names that differ in signs or case alone")
    reachable = np.array([label not in left_out for label in labels]) if known else None
    return Bins(name, labels, np.array([counts[label] for label in labels], np.int64), reachable)


@dataclass
class CoverageRecord:
    """Bins of one set of vectors or of several: what it is of (``about``), how many ``vectors``, ``groups`` by name.

    ``vectors`` is None where a file does not say it, ``about`` is empty then.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec, plan
    >>> from softnum.vectors.plans.coverage import Coverage
    >>> coverage = Coverage(VectorSpec.make("multiply", "e2m1fn"))
    >>> for block in plan(coverage.spec).blocks():
    ...     coverage.add(block)
    >>> record = CoverageRecord.of(coverage)
    >>> CoverageRecord.from_dict(record.to_dict(), "coverage.json").to_dict() == record.to_dict()
    True
    """

    about: dict[str, str] = field(default_factory=dict)
    vectors: int | None = None
    groups: dict[str, Bins] = field(default_factory=dict)

    @classmethod
    def of(cls, coverage: Coverage | MixedCoverage) -> CoverageRecord:
        """What was counted."""
        return cls(coverage.spec.facts(), coverage.vectors, coverage.groups)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, as `Coverage.to_dict`."""
        return {**self.about, "vectors": self.vectors, "groups": [group.to_dict() for group in self.groups.values()]}

    @classmethod
    def from_dict(cls, data: Any, source: str) -> CoverageRecord:
        """The record of `to_dict`; CoverageFileError if it is none, or says of itself what is not so."""
        if not isinstance(data, dict) or not isinstance(data.get("groups"), list):
            raise CoverageFileError(f"{source}: is no coverage of softnum's, which has vectors and groups")
        about = {key: value for key, value in data.items() if key not in ("vectors", "groups")}
        if not all(isinstance(value, str) for value in about.values()):
            raise CoverageFileError(f"{source}: what the coverage is of is not stated as text")
        vectors = data.get("vectors")
        record = cls(about, None if vectors is None else whole_number(vectors, "vectors", source))
        for entry in data["groups"]:
            group = _group_of(entry, source)
            if group.name in record.groups:
                raise CoverageFileError(f"{source}: {group.name!r} is there twice")
            record.groups[group.name] = group
        return record

    @property
    def holes(self) -> dict[str, list[str]]:
        """Labels that no vector hit, by group; of groups whose ``reachable`` is None some may be impossible."""
        return {name: group.missed for name, group in self.groups.items() if group.missed}

    def __str__(self) -> str:
        return text_of(self.vectors, self.groups)


def _group_of(entry, source: str) -> Bins:
    keys = ("name", "labels", "counts", "missed", "impossible", "hit", "bins")
    if not isinstance(entry, dict) or any(key not in entry for key in keys):
        raise CoverageFileError(f"{source}: a group has {', '.join(keys)}; write it again with this softnum")
    name, labels, counts, missed, impossible = (entry[key] for key in keys[:5])
    if not isinstance(name, str) or not isinstance(labels, list) or not isinstance(counts, dict):
        raise CoverageFileError(f"{source}: a group's name is text, its labels are a list, its counts a table")
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
        raise CoverageFileError(f"{source}: labels of {name!r:.60} are texts, each of which is there once")
    if not all(listed is None or isinstance(listed, list) for listed in (missed, impossible)):
        raise CoverageFileError(f"{source}: missed and impossible bins of {name!r:.60} are lists or null")
    for label in (*counts, *(missed or ()), *(impossible or ())):
        if label not in labels:
            raise CoverageFileError(f"{source}: {name!r:.60} has no bin {label!r:.60}")
    found = {label: whole_number(counts.get(label, 0), f"the count of {label!r:.60}", source) for label in labels}
    group = bins_named(name, found, source, impossible or (), impossible is not None)
    told = group.to_dict()
    for key in ("missed", "hit", "bins"):
        if told[key] != entry[key]:
            raise CoverageFileError(f"{source}: {key} of {name!r:.60} is {entry[key]!r:.60}, and its counts say "
                                    f"{told[key]!r:.60}")  # fmt: skip
    return group


# -- sums --------------------------------------------------------------------------------------------------------------
def merged(records: Mapping[str, CoverageRecord]) -> CoverageRecord:
    """The sum of records: counts of equal bins are added.

    Parameters
    ----------
    records : mapping of str to CoverageRecord
        By the names of their files. Groups and bins are the same whose names differ in case and in signs alone, as
        formats of files need it.

    Returns
    -------
    CoverageRecord
        Its names are of the first that says what it is of. The number of vectors is None if one record lacks it.

    Raises
    ------
    CoverageFileError
        If records say that they are of different things, or a group has other bins.

    Examples
    --------
    >>> import numpy as np
    >>> one = CoverageRecord({"op": "add"}, 3, {"flags raised": Bins("flags raised", ["inexact"], np.array([2]))})
    >>> other = CoverageRecord({}, 4, {"flags_raised": Bins("flags_raised", ["Inexact"], np.array([1]))})
    >>> print(merged({"one.json": one, "other.xml": other}))
    bins hit, of 7 vectors:
      flags raised   inexact 3
    """
    if not records:
        raise CoverageFileError("there is no coverage to add")
    order = sorted(records.items(), key=lambda item: not item[1].about)  # those that say what they are of go first
    (first, base), rest = order[0], order[1:]
    total = CoverageRecord(dict(base.about), base.vectors, {n: _copied(g) for n, g in base.groups.items()})
    for source, record in rest:
        if record.about and record.about != total.about:
            raise CoverageFileError(f"{source} is of {_told(record, total)}, {first} of {_told(total, record)}: "
                                    "coverage is added of one operation, format and mode")  # fmt: skip
        both = total.vectors is None or record.vectors is None
        total.vectors = None if both else total.vectors + record.vectors
        names = {_key(name): name for name in total.groups}
        for name, group in record.groups.items():
            mine = names.get(_key(name))
            if mine is None:
                total.groups[name] = _copied(group)
            else:
                _add(total.groups[mine], group, source)
    return total


def _copied(group: Bins) -> Bins:
    return Bins(group.name, list(group.labels), group.counts.copy(), group.reachable)


def _told(record: CoverageRecord, other: CoverageRecord) -> str:
    """What a record is of, as far as another differs."""
    facts = [f"{key} {value}" for key, value in record.about.items() if other.about.get(key) != value]
    return ", ".join(facts) or "another thing"


def _add(total: Bins, group: Bins, source: str) -> None:
    places = {_key(label): i for i, label in enumerate(total.labels)}
    index = [places.get(_key(label)) for label in group.labels]
    missing = set(range(len(places))) - set(index)
    lost = [total.labels[i] for i in sorted(missing) if total.reachable is None or total.reachable[i]]
    new = [label for label, i in zip(group.labels, index, strict=True) if i is None]
    if lost or new:
        text = f"lacks the bin {lost[0]!r:.60}" if lost else f"has a bin {new[0]!r:.60} more"
        raise CoverageFileError(f"{source}: {group.name!r:.60} {text}: its vectors are of something else")
    for i, n in zip(index, group.counts, strict=True):
        if int(total.counts[i]) + int(n) > _MOST:
            raise CoverageFileError(f"{source}: the count of {total.labels[i]!r:.60} goes beyond 63 bits")
        total.counts[i] += n
