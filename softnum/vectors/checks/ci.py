"""Reports for continuous integration: JUnit XML, with a test case for each operation, mode and file, and SARIF.

Sources: the XML schema of Ant's JUnit task as the Windy Road Technology's JUnit.xsd writes it down, and the one of
Jenkins' xUnit plug-in (junit-10.xsd), both of which the reports keep; OASIS, Static Analysis Results Interchange Format
(SARIF) Version 2.1.0, sections 3.13 to 3.30.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from xml.etree import ElementTree

from softnum.vectors.checks.causes import CAUSES
from softnum.vectors.checks.freedom import PermittedReport
from softnum.vectors.checks.mixed_report import MixedReport
from softnum.vectors.checks.packed import PackedReport
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.checks.suite import SuiteReport

__all__ = ["junit_of", "sarif_of"]

#: What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def junit_of(reports: Sequence[CheckReport | MixedReport | SuiteReport | PermittedReport]) -> bytes:
    """Reports as JUnit XML: a test suite for each, in it a test case for each operation and mode.

    Parameters
    ----------
    reports : sequence of reports
        Of `check`, `check_suite`, `check_permitted`.

    Returns
    -------
    bytes
        The document, in UTF-8. Vectors that differ are a failure, an unusable file is an error; an operation of a suite
        of which no line is applicable is skipped. Times are 0, since none is measured, and the date is the file's.

    Examples
    --------
    >>> import io
    >>> from softnum.vectors import check
    >>> from softnum.vectors.checks.ci import junit_of
    >>> print(junit_of([check(io.BytesIO(b"3D 3D 3E 01\\n"), "multiply", "e5m2")]).decode())
    <?xml version='1.0' encoding='utf-8'?>
    <testsuites name="softnum vectors check" tests="1" failures="0" errors="0" time="0">
      <testsuite name="&lt;stream&gt;" package="softnum.vectors" id="0" timestamp="1970-01-01T00:00:00" \
hostname="localhost" tests="1" failures="0" errors="0" skipped="0" time="0">
        <properties>
          <property name="vectors" value="1" />
        </properties>
        <testcase name="multiply e5m2, nearest_even" classname="&lt;stream&gt;" time="0" />
        <system-out />
        <system-err />
      </testsuite>
    </testsuites>
    <BLANKLINE>
    """
    suites = [_suite(report, number) for number, report in enumerate(reports)]
    root = ElementTree.Element("testsuites", name="softnum vectors check")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", "0")
    root.extend(suites)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _suite(report, number: int) -> ElementTree.Element:
    name, vectors, cases = _cases(report)
    bad = [kind for case in cases for kind in ("failure", "error", "skipped") if case.find(kind) is not None]
    suite = ElementTree.Element(
        "testsuite", name=_text(name), package="softnum.vectors", id=str(number), timestamp=_date(name),
        hostname="localhost", tests=str(len(cases)), failures=str(bad.count("failure")), errors=str(bad.count("error")),
        skipped=str(bad.count("skipped")), time="0",
    )  # fmt: skip
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="vectors", value=str(vectors))
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out")
    ElementTree.SubElement(suite, "system-err")
    return suite


def _cases(report) -> tuple[str, int, list[ElementTree.Element]]:
    """(name, how many vectors, test cases) of a report."""
    if isinstance(report, SuiteReport):
        name, cases = " ".join(report.sources), []
        for (op, mode), count in sorted(report.counts.items()):
            case = _case(f"{op}, {mode}", name)
            if count.differ:
                first = [str(d) for d in report.first]
                _add(case, "failure", f"{count.differ} of {count.checked} vectors differ", "differences", first)
            elif not count.checked:
                ElementTree.SubElement(case, "skipped")
            cases.append(case)
        return name, report.checked, cases
    if isinstance(report, PermittedReport):
        case = _case(f"{report.spec.freedom}", report.source)
        if not report.ok:
            counts = f"{report.counts['refuted']} results refuted, {report.counts['undecided']} undecided"
            _add(case, "failure", counts, "refuted" if report.counts["refuted"] else "undecided", [str(report)])
        return report.source, sum(report.counts.values()), [case]
    if isinstance(report, MixedReport):
        cases = [case for part in report.parts for case in _cases(part)[2]]
        if isinstance(report, PackedReport):
            for lane, case in enumerate(cases):
                case.set("name", f"{case.get('name')}, lane {lane}")
        for what, problem, kind, lines in report.of_words:
            cases.append(_case(what, report.source))
            _add(cases[-1], "failure", problem, kind, [f"line {line}" for line in lines])
        return report.source, report.vectors, cases
    case = _case(report.what, report.source)
    if report.error is not None:
        _add(case, "error", report.error, "unusable", [str(report)] if report.failures else [])
    elif report.failures:
        sure = [c for c in report.causes if c.confident]
        causes = "; ".join(f"{c.cause} ({c.detail})" if c.detail else c.cause for c in sure)
        message = f"{report.failures} of {report.vectors} vectors differ" + (f": {causes}" if causes else "")
        _add(case, "failure", message, sure[0].cause if sure else "unexplained", [str(report)])
    return report.source, report.vectors, [case]


def _case(name: str, source: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", name=_text(name), classname=_text(source), time="0")


def _add(case: ElementTree.Element, kind: str, message: str, what: str, lines: list[str]) -> None:
    ElementTree.SubElement(case, kind, message=_text(message), type=what).text = _text("\n".join(lines))


def _text(text: str) -> str:
    return _NOT_XML.sub("?", text)


def _date(name: str) -> str:
    """When the file was written; of a stream the epoch."""
    try:
        seconds = int(os.stat(name).st_mtime)
    except (OSError, ValueError):
        seconds = 0
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def sarif_of(reports: Sequence[CheckReport | MixedReport]) -> dict[str, Any]:
    """Reports of `check` as SARIF 2.1.0: a result for each cause, at the line of its smallest example.

    >>> import io
    >>> from softnum.vectors import check
    >>> from softnum.vectors.checks.ci import sarif_of
    >>> (run,) = sarif_of([check(io.BytesIO(b"3D 3D 3F 01\\n"), "multiply", "e5m2")])["runs"]
    >>> run["results"][0]["ruleId"], run["results"][0]["locations"][0]["physicalLocation"]["region"]
    ('off-by-one-ulp', {'startLine': 1})
    """
    try:
        number = version("softnum")
    except PackageNotFoundError:
        number = "0"
    names = list(CAUSES)
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in CAUSES.items()]
    driver = {"name": "softnum", "version": number, "rules": rules}
    results, notes = [], []
    for mixed in (found for report in reports if isinstance(report, MixedReport) for found in report.nested):
        for _, problem, _, _ in mixed.of_words:
            results.append({"level": "error", "message": {"text": f"{mixed.source}: {problem}"}})
    parts = [part for report in reports for part in (report.single if isinstance(report, MixedReport) else [report])]
    for report in parts:
        if report.error is not None:
            notes.append({"level": "error", "message": {"text": report.error}})
        for found in report.causes:
            name = f"{found.cause} ({found.detail})" if found.detail else found.cause
            text = f"{report.what}: {name}: {found.explains} of {found.of} failures. {found.sentence}."
            place: dict[str, Any] = {"artifactLocation": {"uri": report.source.replace(os.sep, "/")}}
            if found.example is not None and found.example.line > 0:
                place["region"] = {"startLine": found.example.line}
            results.append({
                "ruleId": found.cause, "ruleIndex": names.index(found.cause), "level": "error",
                "message": {"text": text}, "locations": [{"physicalLocation": place}],
                "properties": {"confident": found.confident, "explains": found.explains, "of": found.of},
            })  # fmt: skip
    usable = not notes
    run = {
        "tool": {"driver": driver}, "results": results,
        "invocations": [{"executionSuccessful": usable, "toolExecutionNotifications": notes}],
    }  # fmt: skip
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
