"""One table, JUnit XML, SARIF and page of all cases of `make verify`: python3 summary.py FOLDER CASE ...

Reads what `softnum vectors generate` and `check` left in each case's folder: report.json, report.xml, report.sarif and
coverage.json. A case without a report (the design does not compile, the simulation ended) is an error, with the end of
its log. Writes junit.xml, report.sarif and index.html into FOLDER. Exit code 1 if any case failed.
"""

import html
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def outcome_of(case: Path) -> tuple[str, str, str]:
    """(right, differs or error; in words; what to show of it)."""
    lines = (case / "log").read_text(errors="replace").splitlines() if (case / "log").exists() else ["it did not run"]
    try:
        report = json.loads((case / "report.json").read_text())
    except FileNotFoundError:
        return "error", "error: no answers to check", "\n".join(lines[-15:])
    if report["error"] is not None:
        return "error", f"error: {report['error']}", "\n".join(lines[-15:])
    if not report["failures"]:
        return "right", f"all {'results' if report['ignore_flags'] else 'results and flags'} equal", ""
    causes = ", ".join(cause["cause"] for cause in report["causes"] if cause["confident"]) or "unexplained"
    said = next((i for i, line in enumerate(lines) if line.startswith(f"{report['source']}: ")), 0)
    return "differs", f"{report['failures']} differ: {causes}", "\n".join(lines[said:])


def number_of(case: Path) -> int:
    """How many vectors were checked."""
    path = case / "report.json"
    return json.loads(path.read_text())["vectors"] if path.exists() else 0


def coverage_of(case: Path) -> str:
    """Bins hit, of those that are finite in number."""
    path = case / "coverage.json"
    groups = json.loads(path.read_text())["groups"] if path.exists() else []
    groups = [group for group in groups if group.get("bins")]
    return f"{sum(group['hit'] for group in groups)} of {sum(group['bins'] for group in groups)}"


def junit_of(folder: Path, outcomes: dict[str, tuple[str, str, str]]) -> ElementTree.Element:
    """The test suites of all cases, each by its case's name."""
    root = ElementTree.Element("testsuites", name=folder.name)
    for name, (kind, words, shown) in outcomes.items():
        path = folder / name / "report.xml"
        if path.exists():
            suites = list(ElementTree.parse(path).getroot())
        else:
            counts = dict(tests="1", failures="0", errors="1", skipped="0", time="0")
            suites = [ElementTree.Element("testsuite", counts)]
            case = ElementTree.SubElement(suites[0], "testcase", name=name, time="0")
            ElementTree.SubElement(case, "error", message=words, type=kind).text = NOT_XML.sub("?", shown)
        for suite in suites:
            suite.set("name", f"{folder.name}.{name}")
            for case in suite.iter("testcase"):
                case.set("classname", f"{folder.name}.{name}")
            root.append(suite)
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    return root


def sarif_of(folder: Path, outcomes: dict[str, tuple[str, str, str]]) -> dict | None:
    """The causes of all cases as one run, files named from here; None where nothing was checked."""
    merged = None
    for name in outcomes:
        path = folder / name / "report.sarif"
        if not path.exists():
            continue
        log = json.loads(path.read_text())
        for result in log["runs"][0]["results"]:
            for location in result.get("locations", []):
                artifact = location["physicalLocation"]["artifactLocation"]
                artifact["uri"] = f"{folder.as_posix()}/{name}/{artifact['uri']}"
        if merged is None:
            merged = log
        else:
            merged["runs"][0]["results"] += log["runs"][0]["results"]
            merged["runs"][0]["invocations"] += log["runs"][0]["invocations"]
    return merged


def page_of(folder: Path, outcomes: dict[str, tuple[str, str, str]]) -> str:
    """A table of the cases, with links to their reports."""
    colours = {"right": "#dff0d8", "differs": "#f8d7da", "error": "#f5c6a5"}
    rows = []
    for name, (kind, words, _) in outcomes.items():
        files = [f for f in ("report.html", "report.json", "coverage.json", "log") if (folder / name / f).exists()]
        links = " ".join(f'<a href="{name}/{f}">{f}</a>' for f in files)
        cells = (name, str(number_of(folder / name)), coverage_of(folder / name), words)
        text = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr style="background: {colours[kind]}">{text}<td>{links}</td></tr>')
    return (
        f'<!doctype html><meta charset="utf-8"><title>{folder.name}</title><h1>{folder.name}</h1>\n<table>'
        f"<tr><th>case<th>vectors<th>bins<th>outcome<th>files</tr>\n{chr(10).join(rows)}\n</table>\n"
    )


def main(folder: Path, cases: list[str]) -> int:
    """Write the reports and print the table, what failed last."""
    outcomes = {name: outcome_of(folder / name) for name in cases}
    ElementTree.indent(junit := junit_of(folder, outcomes))
    ElementTree.ElementTree(junit).write(folder / "junit.xml", encoding="utf-8", xml_declaration=True)
    sarif = sarif_of(folder, outcomes)
    (folder / "report.sarif").unlink(missing_ok=True)
    if sarif is not None:
        (folder / "report.sarif").write_text(json.dumps(sarif, indent=1) + "\n")
    (folder / "index.html").write_text(page_of(folder, outcomes))
    width = max(len("case"), *(len(name) for name in cases))
    print(f"\n{'case':<{width}}  {'vectors':>8}  {'bins hit':>13}  outcome")
    for name, (_, words, _) in outcomes.items():
        print(f"{name:<{width}}  {number_of(folder / name):>8}  {coverage_of(folder / name):>13}  {words}")
    print(f"reports: {folder}/index.html, {folder}/junit.xml, {folder}/report.sarif")
    failed = {name: shown for name, (kind, _, shown) in outcomes.items() if kind != "right"}
    for name, shown in failed.items():
        print(f"\n-- {name} ({folder / name}/log)\n{shown}")
    if failed:
        print(f"\n{len(failed)} of {len(cases)} cases failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2:]))
