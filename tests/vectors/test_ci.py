"""JUnit XML and SARIF of what check found: as the schemas have them, and with the counts of the reports."""

import io
import json
import re
from xml.etree import ElementTree

from softnum.cli import build_app
from softnum.vectors import VectorSpec, check, check_suite, junit_of, plan, sarif_of, write
from softnum.vectors.checks.causes import CAUSES
from tests.support.faulty import answers, flushed_results, text_of

MUL = VectorSpec.make("multiply", "binary16")

#: element -> (attributes that must stand, its children in this order: name, fewest, most), of Ant's JUnit schema
SCHEMA = {
    "testsuites": ({"name"}, [("testsuite", 0, None)]),
    "testsuite": (
        {"name", "timestamp", "hostname", "tests", "failures", "errors", "time", "package", "id"},
        [("properties", 1, 1), ("testcase", 0, None), ("system-out", 1, 1), ("system-err", 1, 1)],
    ),
    "properties": (set(), [("property", 0, None)]),
    "property": ({"name", "value"}, []),
    "testcase": ({"name", "classname", "time"}, [("skipped", 0, 1), ("error", 0, 1), ("failure", 0, 1)]),
    "failure": ({"type"}, []),
    "error": ({"type"}, []),
    "skipped": (set(), []),
    "system-out": (set(), []),
    "system-err": (set(), []),
}


def checked(document: bytes) -> ElementTree.Element:
    """The root of a document that keeps the schema, counts included."""
    root = ElementTree.fromstring(document)
    assert root.tag == "testsuites"
    for element in root.iter():
        needed, children = SCHEMA[element.tag]
        assert needed <= set(element.attrib), element.tag
        tags, place = [child.tag for child in element], 0
        for name, fewest, most in children:
            run = 0
            while place < len(tags) and tags[place] == name:
                run, place = run + 1, place + 1
            assert run >= fewest and (most is None or run <= most), (element.tag, name)
        assert place == len(tags), (element.tag, tags)
    for suite in root:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases)
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name)) == sum(case.find(kind) is not None for case in cases)
    assert [suite.get("id") for suite in root] == [str(i) for i in range(len(root))]
    for name in ("tests", "failures", "errors"):
        assert int(root.get(name)) == sum(int(suite.get(name)) for suite in root)
    return root


def wrong() -> bytes:
    return text_of(MUL, answers(MUL, flushed_results(True), 1500))


def test_a_test_case_for_each_report():
    good = check(io.BytesIO(b"3D 3D 3E 01\n"), "multiply", "e5m2")
    bad = check(io.BytesIO(wrong()), "multiply", "binary16", ignore_flags=True)
    root = checked(junit_of([good, bad]))
    passed, failed = root.iter("testcase")
    assert passed.get("name") == "multiply e5m2, nearest_even" and not list(passed)
    failure = failed.find("failure")
    assert failure.get("type") == "flush-to-zero" and f"{bad.failures} of {bad.vectors} vectors differ" in failure.get(
        "message"
    )
    assert failure.text.startswith("line ") and bad.verdict in failure.text
    assert checked(junit_of([])).get("tests") == "0"


def test_what_xml_cannot_hold_is_replaced():
    report = check(io.BytesIO(wrong()), "multiply", "binary16", ignore_flags=True)
    report.source = 'a\x00\x1b<&>"b'
    assert checked(junit_of([report]))[0].get("name") == 'a??<&>"b'


def test_a_test_case_for_each_operation_of_a_suite(tmp_path):
    path = tmp_path / "some.fptest"
    path.write_text("b32+ =0 +1.000000P0 +1.000000P0 -> +1.000000P1\nb32* > +1.000000P0 +1.000000P0 -> +1.000000P1\n")
    report = check_suite([path])
    cases = {case.get("name"): case for case in checked(junit_of([report])).iter("testcase")}
    assert len(cases) == len(report.counts) == 2 and report.differ == 1
    assert [name for name, case in cases.items() if case.find("failure") is not None] == ["b32*, >"]


def test_sarif():
    report = check(io.BytesIO(wrong()), "multiply", "binary16", ignore_flags=True)
    data = json.loads(json.dumps(sarif_of([report])))
    (run,) = data["runs"]
    assert data["version"] == "2.1.0" and run["invocations"][0]["executionSuccessful"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(CAUSES)
    (result,) = run["results"]
    assert (
        list(CAUSES)[result["ruleIndex"]] == result["ruleId"] == "flush-to-zero" and result["properties"]["confident"]
    )
    place = result["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == report.causes[0].example.line


def softnum(capsys, *words) -> tuple[int, str]:
    code = build_app()(["vectors", "check", *map(str, words)], standalone_mode=False)
    return code, capsys.readouterr().out


def test_files_with_headers_are_checked_one_by_one(tmp_path, capsys):
    for op in ("add", "multiply"):
        write(plan(VectorSpec.make(op, "e5m2"), count=50), tmp_path / f"{op}.txt")
    files = [tmp_path / "add.txt", tmp_path / "multiply.txt"]
    lines = files[1].read_text().splitlines(True)
    lines[-1] = re.sub(r"(\S+) (\S+)\n", lambda m: f"{int(m[1], 16) ^ 1:02X} {m[2]}\n", lines[-1])
    files[1].write_text("".join(lines))
    junit, sarif, out = (tmp_path / name for name in ("r.xml", "r.sarif", "r.json"))
    code, said = softnum(capsys, *files, "--junit", junit, "--sarif", sarif, "-o", out)
    assert code == 1 and "50 vectors, all results and flags equal" in said and "1 of 50 vectors differ" in said
    root = checked(junit.read_bytes())
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    assert [report["failures"] for report in json.loads(out.read_text())] == [0, 1]
    assert len(json.loads(sarif.read_text())["runs"][0]["results"]) == 1


def test_an_unusable_file_is_an_error_and_the_others_are_checked(tmp_path, capsys):
    write(plan(VectorSpec.make("add", "e5m2"), count=20), tmp_path / "good.txt")
    text = (tmp_path / "good.txt").read_text().splitlines(True)
    (tmp_path / "bad.txt").write_text("".join([*text[:-1], "zz\n"]))
    junit = tmp_path / "r.xml"
    code, _ = softnum(capsys, tmp_path / "bad.txt", tmp_path / "good.txt", "--junit", junit)
    assert code == 2
    root = checked(junit.read_bytes())
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("2", "1", "0")
    assert root.find(".//error").get("type") == "unusable"
