"""Coverage as UCIS XML, the interchange format that simulators and coverage tools share.

Source: Accellera, Unified Coverage Interoperability Standard (UCIS) Version 1.0, chapter 9, XML interchange format. A
group of bins is a coverpoint, a bin that cannot be hit one of type "ignore"; all are in one instance of a covergroup.
"""

from __future__ import annotations

from xml.etree import ElementTree

from softnum.runtime.config import __version__
from softnum.vectors.covered.record import CoverageFileError, CoverageRecord, bins_named, whole_number
from softnum.vectors.plans.coverage import Bins

__all__ = ["COVERGROUP", "read_ucis", "ucis_of"]

#: the covergroup's name, that of the generated one in SystemVerilog too
COVERGROUP = "softnum_bins"
_NAMESPACE = "http://www.w3.org/2001/XMLSchema-instance"  # as the standard's own schema has it
_NO_DATE = "1970-01-01T00:00:00"  # the same coverage, the same file
_PLACE = {"file": "1", "line": "1", "inlineCount": "1"}
_IGNORED = ("ignore", "illegal")


def _add(parent, tag: str, /, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _fact(parent, key: str, value, kind: str = "str") -> None:
    _add(parent, "userAttr", key=key, type=kind).text = str(value)


def ucis_of(record: CoverageRecord) -> bytes:
    """A record as UCIS XML, in UTF-8.

    Facts and the number of vectors are attributes of the covergroup's instance; of groups whose reachable bins are not
    known an attribute says so. Dates are 1970's, since the same coverage is the same file.

    Examples
    --------
    >>> import numpy as np
    >>> group = Bins("flags raised", ["inexact", "invalid"], np.array([2, 0]))
    >>> text = ucis_of(CoverageRecord({"op": "add"}, 3, {group.name: group}))
    >>> read_ucis(text, "coverage.xml").to_dict()["groups"][0]["counts"]
    {'inexact': 2}
    """
    root = ElementTree.Element(f"{{{_NAMESPACE}}}UCIS", ucisVersion="1.0", writtenBy=f"softnum {__version__}",
                               writtenTime=_NO_DATE)  # fmt: skip
    _add(root, "sourceFiles", fileName="softnum vectors", id="1")
    _add(root, "historyNodes", historyNodeId="0", logicalName="softnum vectors", testStatus="true", date=_NO_DATE,
         toolCategory="UCIS:Other", ucisVersion="1.0", vendorId="softnum", vendorTool="softnum",
         vendorToolVersion=__version__)  # fmt: skip
    module = record.about.get("op", "vectors")
    instance = _add(root, "instanceCoverages", name=module, key="0", instanceId="0", moduleName=module)
    _add(instance, "id", **_PLACE)
    group = _add(_add(instance, "covergroupCoverage"), "cgInstance", name=COVERGROUP, key="0")
    _add(group, "options", per_instance="true")
    place = _add(group, "cgId", cgName=COVERGROUP, moduleName=module)
    _add(place, "cginstSourceId", **_PLACE)
    _add(place, "cgSourceId", **_PLACE)
    for number, bins in enumerate(record.groups.values()):
        _coverpoint(group, bins, number)
    if record.vectors is not None:
        _fact(group, "vectors", record.vectors, "int64")
    for key, value in record.about.items():
        _fact(group, f"of {key}", value)
    ElementTree.register_namespace("ucis", _NAMESPACE)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _coverpoint(group, bins: Bins, number: int) -> None:
    point = _add(group, "coverpoint", name=bins.name, key=str(number))
    _add(point, "options")
    impossible = set(bins.impossible)
    for place, (label, count) in enumerate(zip(bins.labels, bins.counts, strict=True)):
        kind = "ignore" if label in impossible else "bins"
        entry = _add(point, "coverpointBin", name=label, type=kind, key=str(place))
        span = _add(entry, "range", **{"from": str(place), "to": str(place)})
        _add(span, "contents", coverageCount=str(count))
    if bins.reachable is None:
        _fact(point, "reachable", "unknown")


def read_ucis(data: bytes, source: str) -> CoverageRecord:
    """The record that a file in UCIS XML states.

    Coverpoints and crosses of all covergroups are groups; those of one name, of several instances, are added up. Names
    are those of the file.

    Raises
    ------
    CoverageFileError
        For what is no UCIS XML or holds no covergroup, a bin without a count, and groups of one name and unlike bins.
    """
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise CoverageFileError(f"{source}: is no XML: {error}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    if root.tag != "UCIS":
        raise CoverageFileError(f"{source}: is no UCIS XML: its outermost element is {root.tag!r:.60}")
    record = CoverageRecord()
    instances = list(root.iter("cgInstance"))
    if not instances:
        raise CoverageFileError(f"{source}: holds no coverage of covergroups (cgInstance)")
    for instance in instances:
        _read_instance(instance, record, source)
    if not record.groups:
        raise CoverageFileError(f"{source}: its covergroups have no coverpoints")
    return record


def _read_instance(instance, record: CoverageRecord, source: str) -> None:
    facts = {fact.get("key", ""): fact.text or "" for fact in instance.findall("userAttr")}
    about = {key.removeprefix("of "): value for key, value in facts.items() if key.startswith("of ")}
    if record.about and about != record.about:
        raise CoverageFileError(f"{source}: its covergroups are of different things; a file each, please")
    if "vectors" in facts:
        record.vectors = (record.vectors or 0) + whole_number(facts["vectors"], "vectors", source)
    record.about = about or record.about
    points = [(point, "coverpointBin") for point in instance.findall("coverpoint")]
    for point, kind in [*points, *((cross, "crossBin") for cross in instance.findall("cross"))]:
        bins = _read_bins(point, kind, source)
        before = record.groups.get(bins.name)
        if before is None:
            record.groups[bins.name] = bins
        elif before.labels != bins.labels or before.impossible != bins.impossible:
            raise CoverageFileError(f"{source}: {bins.name!r:.60} is there twice, with unlike bins")
        else:
            before.counts += bins.counts


def _read_bins(point, kind: str, source: str) -> Bins:
    name = point.get("name", "")
    counts: dict[str, int] = {}
    ignored, known = [], True
    for fact in point.findall("userAttr"):
        known = known and (fact.get("key"), fact.text) != ("reachable", "unknown")
    for entry in point.findall(kind):
        label, contents = entry.get("name", ""), list(entry.iter("contents"))
        if not label or label in counts:
            raise CoverageFileError(f"{source}: a bin of {name!r:.60} has no name, or that of another, {label!r:.60}")
        if len(contents) != 1:
            raise CoverageFileError(f"{source}: {label!r:.60} of {name!r:.60} has {len(contents)} counts, not one")
        what = f"the count of {label!r:.60}"
        counts[label] = whole_number(contents[0].get("coverageCount", ""), what, source)
        if entry.get("type") in _IGNORED:
            ignored.append(label)
    if not name:
        raise CoverageFileError(f"{source}: a coverpoint has no name")
    return bins_named(name, counts, source, ignored, known)
