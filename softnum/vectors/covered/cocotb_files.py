"""Coverage as cocotb-coverage writes it, in XML and in YAML.

Source: cocotb-coverage 2.0, CoverageDB.export_to_xml, export_to_yaml and merge_coverage, which add such files up. Names
of cover points are identifiers there, below ``top``; what cannot be hit is no bin.
"""

from __future__ import annotations

import json
from xml.etree import ElementTree

from softnum.vectors.covered.record import (
    CoverageFileError,
    CoverageRecord,
    bins_named,
    identifier,
    whole_number,
)
from softnum.vectors.plans.coverage import Bins

__all__ = ["cocotb_xml_of", "cocotb_yaml_of", "read_cocotb_xml", "read_cocotb_yaml"]

_TOP = "top"
_ITEM, _POINT = (f"<class 'cocotb_coverage.coverage.{name}'>" for name in ("CoverItem", "CoverPoint"))
_HITS = "bins:_hits"


def _name(group: Bins) -> str:
    """The identifier of a group; what holds "bin" is taken for one where files are added up."""
    return identifier(group.name).replace("bin", "Bin")


def _possible(group: Bins) -> dict[str, int]:
    impossible = set(group.impossible)
    return {label: int(n) for label, n in zip(group.labels, group.counts, strict=True) if label not in impossible}


def _share(size: int, hit: int) -> dict[str, str]:
    return {"size": str(size), "coverage": str(hit), "cover_percentage": str(round(hit * 100 / size, 2))}


def _points(record: CoverageRecord) -> list[tuple[str, dict[str, int]]]:
    """(identifier, counts by label) of the groups that have bins."""
    return [(_name(group), counts) for group in record.groups.values() if (counts := _possible(group))]


def cocotb_xml_of(record: CoverageRecord) -> bytes:
    """A record as cocotb-coverage's XML, in UTF-8.

    Examples
    --------
    >>> import numpy as np
    >>> group = Bins("flags raised", ["inexact", "invalid"], np.array([2, 0]))
    >>> text = cocotb_xml_of(CoverageRecord({}, 3, {group.name: group}))
    >>> print(read_cocotb_xml(text, "coverage.xml"))
    bins hit, of an unknown number of vectors:
      flags_raised   1 of 2; not: invalid
    """
    points = _points(record)
    size, hit = sum(len(counts) for _, counts in points), sum(n > 0 for _, counts in points for n in counts.values())
    top = ElementTree.Element(_TOP, {"abs_name": _TOP, **_share(max(size, 1), hit)})
    for name, counts in points:
        share = _share(len(counts), sum(n > 0 for n in counts.values()))
        path = f"{_TOP}.{name}"
        point = ElementTree.SubElement(top, name, {**share, "abs_name": path, "weight": "1", "at_least": "1"})
        for i, (label, n) in enumerate(counts.items()):
            entry = {"bin": label, "hits": str(n), "abs_name": f"{path}.bin{i}"}
            ElementTree.SubElement(point, f"bin{i}", entry)
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="utf-8", xml_declaration=True) + b"\n"


def cocotb_yaml_of(record: CoverageRecord) -> bytes:
    """A record as cocotb-coverage's YAML, in UTF-8.

    Examples
    --------
    >>> import numpy as np
    >>> group = Bins("flags raised", ["inexact", "invalid"], np.array([2, 0]))
    >>> print(cocotb_yaml_of(CoverageRecord({}, 3, {group.name: group})).decode(), end="")
    top:
      cover_percentage: 50.0
      coverage: 1
      size: 2
      type: "<class 'cocotb_coverage.coverage.CoverItem'>"
    top.flags_raised:
      at_least: 1
      bins:_hits:
        "inexact": 2
        "invalid": 0
      cover_percentage: 50.0
      coverage: 1
      size: 2
      type: "<class 'cocotb_coverage.coverage.CoverPoint'>"
      weight: 1
    """
    points, lines = _points(record), []
    size, hit = sum(len(counts) for _, counts in points), sum(n > 0 for _, counts in points for n in counts.values())
    share = _share(max(size, 1), hit)
    keys = ("cover_percentage", "coverage", "size")
    lines += [f"{_TOP}:", *(f"  {key}: {share[key]}" for key in keys), f'  type: "{_ITEM}"']
    for name, counts in points:
        share = _share(len(counts), sum(n > 0 for n in counts.values()))
        lines += [f"{_TOP}.{name}:", "  at_least: 1", f"  {_HITS}:"]
        lines += [f"    {json.dumps(label)}: {n}" for label, n in counts.items()]
        lines += [*(f"  {key}: {share[key]}" for key in keys), f'  type: "{_POINT}"', "  weight: 1"]
    return ("\n".join(lines) + "\n").encode()


# -- back --------------------------------------------------------------------------------------------------------------
def read_cocotb_xml(data: bytes, source: str) -> CoverageRecord:
    """The record that cocotb-coverage's XML states; CoverageFileError for other XML, and sums that are not so."""
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise CoverageFileError(f"{source}: is no XML: {error}") from None
    record = CoverageRecord()
    for point in root.iter():
        entries = [child for child in point if "hits" in child.attrib]
        if not entries:
            continue
        counts: dict[str, int] = {}
        for entry in entries:
            _count(counts, entry.get("bin", ""), entry.get("hits"), point.get("abs_name", point.tag), source)
        _take(record, point.get("abs_name", point.tag), counts, point.attrib, source)
    return _some(record, source)


def read_cocotb_yaml(data: bytes, source: str) -> CoverageRecord:
    """The record that cocotb-coverage's YAML states; ValueError where PyYAML is missing, to say what to install."""
    try:
        import yaml
    except ImportError:
        raise ValueError(f"{source}: YAML is read by PyYAML: pip install 'softnum[coverage]'") from None
    try:
        items = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that there is not, brackets too deep
        raise CoverageFileError(f"{source}: is no YAML: {error}") from None
    record = CoverageRecord()
    for path, item in items.items() if isinstance(items, dict) else ():
        if not isinstance(item, dict) or not isinstance(item.get(_HITS), dict):
            continue
        counts: dict[str, int] = {}
        for label, hits in item[_HITS].items():
            _count(counts, str(label), hits, str(path), source)
        _take(record, str(path), counts, item, source)
    return _some(record, source)


def _count(counts: dict[str, int], label: str, hits, path: str, source: str) -> None:
    if not label or label in counts:
        raise CoverageFileError(f"{source}: a bin of {path!r:.60} has no name, or that of another, {label!r:.60}")
    counts[label] = whole_number(hits, f"the hits of {label!r:.60} of {path!r:.60}", source)


def _take(record: CoverageRecord, path: str, counts: dict[str, int], said, source: str) -> None:
    """Add a point to the record, after a look at what it says of itself."""
    name = path.rpartition(".")[2]
    if name in record.groups:
        raise CoverageFileError(f"{source}: {name!r:.60} is there twice; a file for each, please")
    weight = whole_number(said.get("weight", 1), f"the weight of {path!r:.60}", source)
    least = whole_number(said.get("at_least", 1), f"at_least of {path!r:.60}", source)
    if set(counts) != {"PASS", "FAIL"}:  # else a check, which is covered by both at once
        right = {"size": weight * len(counts), "coverage": weight * sum(n >= least for n in counts.values())}
        for key, value in right.items():
            if key in said and whole_number(said[key], f"{key} of {path!r:.60}", source) != value:
                raise CoverageFileError(f"{source}: {key} of {path!r:.60} is {said[key]}, and its bins say {value}")
    record.groups[name] = bins_named(name, counts, source)


def _some(record: CoverageRecord, source: str) -> CoverageRecord:
    if not record.groups:
        raise CoverageFileError(f"{source}: holds no cover points of cocotb-coverage, with bins and hits")
    return record
