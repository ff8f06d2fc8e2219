"""softnum report: its page, its files, and what it says of folders that are not as they should be."""

import csv
import html.parser
import json
import re
import shutil
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app, need
from softnum.tta import IterationTime, memory_of, parallel_time, read_workloads, write_report
from softnum.tta.html import export_report, load_report
from softnum.tta.html.export import export
from softnum.tta.html.folder import read_folder
from softnum.tta.html.page import library
from softnum.tta.html.sections import page_of
from softnum.tta.workloads import TENSOR_CLASSES, gemm_layer_times
from tests.support.report_folders import REACHED, SEEDS, comparison, study, write_record

EVIL = '<script>alert("x")</script>'


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return comparison(tmp_path_factory.mktemp("tta"))


@pytest.fixture(scope="module")
def page(folder):
    return load_report(folder).page()


def table(page, name):
    return next(block for block in page.tables if block.name == name)


class Elements(html.parser.HTMLParser):
    """Counts elements, and checks that they are nested as they must be."""

    EMPTY = frozenset({"meta", "input", "path", "br", "link"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.attributes = [], {}, []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# -- the page ----------------------------------------------------------------------------------------------------------
def test_the_summary_is_what_the_results_say(folder, page):
    results = json.loads((folder / "results.json").read_text())
    found = {row["design"]: row for row in table(page, "summary-stated-hardware").data}
    for entry in results["variants"][0]["designs"]:
        row = found[entry["design"]]
        assert row["seconds_per_iteration"] == entry["time"]["seconds"]
        for key in ("median", "low", "high"):
            assert row[f"tta_{key}"] == entry["tta"][key]
        assert (row["speedup"], row["throughput"], row["efficiency"]) == tuple(
            entry[key] for key in ("speedup", "throughput", "efficiency")
        )
        assert [row["tta_interval_low"], row["tta_interval_high"]] == entry["intervals"]["tta"]
    # by hand: 12.036 µs an iteration, 30 iterations to the target (20, 30, 40)
    assert found["a-float32"]["tta_median"] == pytest.approx(30 * 12.036e-6)
    assert found["h-posit8"]["tta_median"] is None and found["h-posit8"]["reached"] == 1


def test_what_is_shown_of_a_number(page):
    rows = {row.design: row for row in table(page, "summary-stated-hardware").rows}
    texts = [cell.text for cell in rows["a-float32"].cells]
    assert texts == ["a-float32", "3 of 3", "0.926", "30", "12.0 µs", "361 µs", "1.00", "1.00", "1.00"]
    assert rows["a-float32"].cells[5].full.startswith("median 0.000361")
    assert rows["h-posit8"].cells[1].text == "1 of 3" and rows["h-posit8"].cells[5].text == "not reached"
    equal = {row.design: row for row in table(page, "summary-equal-area").rows}
    assert equal["h-posit8"].cells[4].small.startswith("no multiplier area is known for posit8; ")


def test_curves_hold_every_evaluation_and_the_medians(page):
    curves = next(chart for chart in page.charts if chart.name == "curves")
    assert len(curves.data) == len(REACHED) * len(SEEDS) * 6
    first = curves.data[0]
    assert (first["design"], first["run"], first["iteration"]) == ("a-float32", "seed 1", 10)
    assert first["epoch"] == 10 * 32 / 640 and first["time0"] == pytest.approx(10 * 12.036e-6)
    medians = [row for row in curves.spec["datasets"]["medians"] if row["design"] == "a-float32"]
    assert [row["value"] for row in medians][:2] == [pytest.approx(0.23), pytest.approx(0.25)]
    assert [text for text, _ in curves.controls[0].options] == [
        "iterations", "epochs", "time, stated hardware", "time, equal area"
    ]  # fmt: skip


def test_long_curves_are_thinned_by_a_stated_step(folder, monkeypatch):
    monkeypatch.setattr("softnum.tta.html.figures.MOST_POINTS", 30)  # of 72
    curves = next(chart for chart in load_report(folder).page().charts if chart.name == "curves")
    assert "One evaluation in 3 is drawn; results.json has them all." in curves.caption
    first = [row["iteration"] for row in curves.data if (row["design"], row["run"]) == ("b-binary16", "seed 2")]
    assert first == [10, 40, 60]  # every third, and the last


def test_evaluations_that_are_not_finite_are_counted_not_drawn(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "tta")
    edit(copy, lambda t: t["runs"][0]["curve"].update(value=[0.1, 0.2, None, None, None, None]))
    page = load_report(copy).page()
    assert "4 evaluations are not finite (a diverged run) and are not drawn." in notes(page)
    curves = next(chart for chart in page.charts if chart.name == "curves")
    assert len(curves.data) == len(REACHED) * len(SEEDS) * 6 - 4
    edit(copy, lambda t: [run["curve"].update(value=[None] * 6) for run in t["runs"]])
    page = load_report(copy).page()
    assert [line for line in notes(page) if "no curve to draw" in line]
    assert "curves" not in [chart.name for chart in page.charts]


def test_choices_change_places_that_are_there(page):
    changed = 0
    for chart in page.charts:
        for control in chart.controls:
            for _, patch in control.options:
                for pointer, _ in patch:
                    *keys, last = pointer.split("/")[1:]
                    place = chart.spec
                    for key in keys:
                        place = place[int(key)] if isinstance(place, list) else place[key]
                    assert isinstance(place, dict) and last in ("field", "title", "scale", "axis", "value")
                    changed += 1
    assert changed > 20


def test_rooflines_are_not_exceeded_and_utilisation_is_a_share(page):
    roofs = [chart for chart in page.charts if chart.name.startswith("roofline")]
    assert len(roofs) == 2
    for chart in roofs:
        tops = [row["rate"] for row in chart.spec["datasets"]["roofs"]]
        assert chart.data and all(0 < row["rate"] <= max(tops) for row in chart.data)
    used = next(chart for chart in page.charts if chart.name == "utilisation-stated-hardware")
    assert {row["part"] for row in used.data} >= {"fc1, forward", "fc2, backward, data"}
    fc1 = next(row for row in used.data if (row["design"], row["part"]) == ("a-float32", "fc1, forward"))
    # 32 x 128 x 64 multiplications on 1024 multipliers, in 3574 cycles
    assert fc1["value"] == pytest.approx(32 * 128 * 64 / 1024 / 3574)


def test_memory_and_data_parallel_times_are_those_of_the_functions(folder, page):
    works = {work.design: work for work in read_workloads(folder / "workloads.json")}
    rows = {row["design"]: row for row in table(page, "memory-table").data}
    for design, work in works.items():
        memory = memory_of(work)
        assert rows[design]["peak_bytes"] == memory.peak == sum(rows[design][f"{c}_bytes"] for c in TENSOR_CLASSES)
    # 64 x 128 + 128 and 128 x 10 + 10 parameters of four bytes
    assert rows["a-float32"]["weights_bytes"] == 4 * (64 * 128 + 128 + 128 * 10 + 10) == 38440
    parallel = next(chart for chart in page.charts if chart.name == "parallel")
    alone = 12.036e-6
    for row in parallel.data:
        if row["design"] == "a-float32":
            assert row["iteration"] == pytest.approx(alone + row["exposed"])
            assert row["speedup"] == pytest.approx(row["workers"] * alone / row["iteration"])
    rate = next(row for row in table(page, "parallel-table").data if row["design"] == "a-float32")
    assert rate["gradient_bytes"] == 38440
    slower, faster = (
        parallel_time(works["a-float32"], _layers(folder), 4, rate["least_bits_per_second_4_workers"] * factor)
        for factor in (0.999, 1.001)
    )
    assert slower.speedup < 1 < faster.speedup


def _layers(folder):
    entry = json.loads((folder / "results.json").read_text())["variants"][0]["designs"][0]
    return gemm_layer_times(IterationTime("a-float32", entry["time"]["seconds"], detail=entry["time"]["detail"]))


def test_every_number_has_its_file(folder, page):
    rows = {row["path"]: row for row in table(page, "sources").data}
    records = sorted(path.relative_to(folder).as_posix() for path in folder.glob("records/*/*.jsonl"))
    assert [path for path, row in rows.items() if row["role"] == "record"] == records
    assert all(len(row["sha256"]) == 64 and row["state"] == "the same" for row in rows.values())
    runs = table(page, "runs").data
    assert len(runs) == len(REACHED) * len(SEEDS) and {row["record"] for row in runs} == set(records)
    assert rows["records/b-binary16/seed-2.jsonl"]["gives"] == ["iterations and accuracy of b-binary16, seed 2"]


def test_the_page_is_whole_and_loads_nothing(folder, tmp_path):
    text = write_report(folder, tmp_path / "report.html").read_text(encoding="utf-8")
    elements = Elements(text)
    assert elements.seen["table"] >= 6 and elements.seen["figure"] >= 8 and elements.seen["caption"] >= 6
    for _, attributes in elements.attributes:
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#")[0] == "#"  # the page does not lie beside the records
    policy = next(a["content"] for _, a in elements.attributes if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe-eval" not in policy
    ours = re.sub(r"<script>.*?</script>", "", text, flags=re.S)  # but for the charts' library, and our script
    assert "http:" not in ours and "https:" not in ours and "//" not in re.sub(r"<style>.*?</style>", "", ours)
    labelled = [a for tag, a in elements.attributes if tag == "input"]
    assert [a["value"] for a in labelled] == list(REACHED) and all(a["type"] == "checkbox" for a in labelled)


def test_links_to_the_files_beside_the_page(folder):
    path = write_report(folder, folder / "report.html")
    links = [a["href"] for tag, a in Elements(path.read_text(encoding="utf-8")).attributes if tag == "a"]
    files = [link for link in links if not link.startswith("#")]
    assert len(set(files)) == len(REACHED) * len(SEEDS) + 1 and all((folder / link).is_file() for link in files)
    path.unlink()


@pytest.mark.slow
def test_the_same_folder_gives_the_same_bytes(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    first, second = (write_report(f, tmp_path / f"{i}.html") for i, f in enumerate((folder, copy)))
    assert first.read_bytes() == second.read_bytes()
    pages = [load_report(f).page() for f in (folder, copy)]
    assert pages[0].charts == pages[1].charts  # so that it is enough to draw some of them
    pictures = [
        export(replace(page, sections=page.sections[:3]), png=tmp_path / f"png-{i}", svg=tmp_path / f"svg-{i}")
        for i, page in enumerate(pages)
    ]
    assert len(pictures[0]) == 8
    for a, b in zip(*pictures, strict=True):
        assert a.name == b.name and a.read_bytes() == b.read_bytes()


def test_charts_are_valid(folder, page, tmp_path):
    assert page_of(read_folder(folder), validate=True) == page
    page_of(read_folder(study(tmp_path / "study")), validate=True)


def test_the_charts_library_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "cache"))
    made = library.__wrapped__()
    [file] = (tmp_path / "cache").iterdir()
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda **kinds: "made anew")
    assert library.__wrapped__() == made
    file.write_text(file.read_text()[:-1])  # cut short by something else
    assert library.__wrapped__() == "made anew"
    assert library.__wrapped__() == "made anew"
    (tmp_path / "file").touch()
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "file" / "cache"))
    assert library.__wrapped__() == "made anew"


def test_text_of_users_is_text(tmp_path):
    folder = comparison(tmp_path / "tta", names={"b-binary16": EVIL, "c-wang-fp8": "]]> --> & 'c' \u2028"})
    text = write_report(folder, tmp_path / "report.html").read_text(encoding="utf-8")
    assert EVIL not in text and "&lt;script&gt;alert(" in text and "\\u003cscript\\u003ealert(" in text
    elements = Elements(text)
    assert elements.seen["script"] == 3
    assert EVIL in [attributes.get("value") for _, attributes in elements.attributes]
    data = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, flags=re.S)[1]
    assert json.loads(data)["designs"][1] == EVIL


# -- files -------------------------------------------------------------------------------------------------------------
def test_exports(folder, page, tmp_path):
    files = export_report(
        folder, png=tmp_path / "p", svg=tmp_path / "s", csv=tmp_path / "c", json=tmp_path / "all.json"
    )
    charts, tables = [c.name for c in page.charts], [t.name for t in page.tables]
    assert len(files) == 2 * len(charts) + len(charts) + len(tables) + 1 and all(f.stat().st_size for f in files)
    for name in charts:
        assert (tmp_path / "p" / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    drawn = (tmp_path / "s" / "curves.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg") and "Learning curves" in drawn
    assert all(drawn.count(design) for design in REACHED)  # in its legend
    with open(tmp_path / "c" / "summary-stated-hardware.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    want = table(page, "summary-stated-hardware").data
    assert [float(row["seconds_per_iteration"]) for row in rows] == [row["seconds_per_iteration"] for row in want]
    assert rows[3]["tta_median"] == ""
    whole = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    shown = {block["name"]: block["rows"] for part in whole["sections"] for block in part["blocks"] if "rows" in block}
    assert shown["summary-stated-hardware"] == json.loads(json.dumps(want)) and set(charts) | set(tables) == set(shown)


def test_what_a_pointer_shows_has_its_unit(page):
    def tips(name):
        found, todo = {}, [next(chart for chart in page.charts if chart.name == name).spec]
        while todo:
            part = todo.pop()
            todo += part.get("layer", [])
            for tip in part.get("encoding", {}).get("tooltip", []):
                found[tip["field"]] = tip["title"], tip.get("format")
        return found

    parallel = tips("parallel")
    assert parallel["efficiency"] == ("efficiency", ".1%") and parallel["bandwidth"] == ("bandwidth (b/s)", "~s")
    assert parallel["exposed"] == ("exposed (s)", ".4~s") and "design" in parallel
    assert tips("tta-stated-hardware")["low"] == ("interval from (s)", ".5~s")
    assert tips("layers-stated-hardware")["value"] == ("time per iteration (s)", ".4~s")
    assert tips("memory")["value"] == ("bytes at the peak (B)", ",")  # exact


def test_the_command(folder, tmp_path):
    result = softnum("report", folder, "-o", tmp_path / "r.html", "--csv", tmp_path / "csv", "--device", "v100")
    assert result.exit_code == 0, result.output
    assert f"Written: {tmp_path / 'r.html'} (" in result.output and "needs no network" in result.output
    assert "V100" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert (tmp_path / "csv" / "sources.csv").is_file()
    only = softnum("report", folder, "--json", tmp_path / "only.json")
    assert only.exit_code == 0 and not (folder / "report.html").exists() and (tmp_path / "only.json").is_file()
    assert softnum("report", folder).exit_code == 0
    (folder / "report.html").unlink()


# -- what is not there -------------------------------------------------------------------------------------------------
def notes(page):
    return [line for section in page.sections for block in section.blocks for line in getattr(block, "lines", ())]


def test_what_a_folder_does_not_tell_is_said(tmp_path):
    page = load_report(comparison(tmp_path, workloads=False)).page()
    assert not [chart for chart in page.charts if chart.name.startswith(("roofline", "utilisation"))]
    assert [line for line in notes(page) if "There is no workloads.json" in line]
    assert [line for line in notes(page) if "softnum tta --combine" in line]
    assert Elements(load_report(tmp_path).html()).seen["table"] >= 4


def test_measured_times_have_intervals_and_need_a_device(tmp_path):
    folder = comparison(tmp_path, measured=True)
    page = load_report(folder).page()
    row = table(page, "summary-measured").data[0]
    assert row["kind"] == "measured" and row["seconds_per_iteration_interval_low"] == pytest.approx(0.75e-3)
    assert row["energy_median"] == pytest.approx(30 * 0.5) and row["energy_source"]
    assert [line for line in notes(page) if "its time names no hardware; softnum report --device names one" in line]
    page = load_report(folder, device="v100").page()
    known = table(page, "roofline-table-measured").data
    assert {row["device"] for row in known} != set() and all(0 < row["utilisation"] < 1 for row in known)


def test_a_device_is_not_charged_with_the_time_of_another_machine(folder):
    page = load_report(folder, device="v100").page()
    name = "NVIDIA Tesla V100 (SXM2, 16 GB)"
    known = table(page, "roofline-table-stated-hardware")
    assert known.title == f"Iteration, {name}"
    assert {(row["device"], row["seconds"], row["utilisation"]) for row in known.data} == {(name, None, None)}
    names = [chart.name for chart in page.charts]
    assert not [each for each in names if each.startswith(("utilisation", "layers"))]
    roofline = next(chart for chart in page.charts if chart.name.startswith("roofline"))
    assert {row["time"] for row in roofline.data} == {"at the roof"} and roofline.caption.startswith("Every operation")
    assert [line for line in notes(page) if f"does not tell what {name} would take" in line]
    parallel = next(chart for chart in page.charts if chart.name == "parallel")
    assert f"in the time of the roofline of {name}" in parallel.caption


def test_a_study_has_an_overview_and_all_its_comparisons(tmp_path):
    page = load_report(study(tmp_path)).page()
    assert page.title == "Time to accuracy: two networks"
    first, second = (table(page, f"all-studies-{label}") for label in ("stated-hardware", "measured"))
    assert first.head == ("Design", "mlp on digits (mlp)") and second.head == ("Design", "mlp on digits (mlp-2)")
    assert "mlp-2: h-posit8, seed 4, failed: its loss was not finite" in notes(page)
    assert "lenet5: no run of it finished" in notes(page)
    names = [block.name for block in (*page.tables, *page.charts)]
    assert len(set(names)) == len(names) and {"mlp-curves", "mlp-2-curves", "mlp-2-sources"} <= set(names)
    text = write_report(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8")
    links = {a["href"] for tag, a in Elements(text).attributes if tag == "a" and not a["href"].startswith("#")}
    assert all((tmp_path / link).is_file() for link in links) and len(links) > 20


# -- what is wrong -----------------------------------------------------------------------------------------------------
def edit(folder, change, name="results.json"):
    table = json.loads((folder / name).read_text())
    change(table)
    (folder / name).write_text(json.dumps(table))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update(schema=1), r"results\.json: of schema 1, and this softnum reads schema 2; run softnum tta"),
        (lambda t: t.update(target="x"), r"results\.json: target: 'x' is not of type 'number'; run softnum tta again"),
        (lambda t: t["variants"][0]["designs"][1]["tta"].pop("low"), r"variants\[0\]\.designs\[1\]\.tta"),
        (lambda t: t["variants"][0]["designs"][1]["time"].update(seconds=0), r"variants\[0\]\.designs\[1\]\.time"),
        (lambda t: t["variants"][1]["designs"].pop(), r"variants\[1\]: designs must be the same in every variant"),
        (lambda t: t["runs"][2]["curve"]["value"].pop(), r"runs\[2\]\.curve: its lists are of different lengths"),
        (lambda t: t["runs"][2]["curve"].update(value=7), r"runs\[2\]\.curve\.value: 7 is not of type 'array'"),
        (lambda t: t["runs"][0].update(design="z"), r"runs\[0\]: no variant has its design 'z'"),
        (
            lambda t: t["sources"][0].update(sha256="0" * 64),
            r"seed-1\.jsonl has changed since .*results\.json was made",
        ),
        (lambda t: t.update(variants=[]), r"variants is empty"),
    ],
)
def test_results_that_are_not_so(folder, tmp_path, change, message):
    copy = shutil.copytree(folder, tmp_path / "tta")
    edit(copy, change)
    with pytest.raises(ValueError, match=message) as error:
        load_report(copy)
    assert str(copy) in str(error.value) and "run softnum tta again" in str(error.value)
    result = softnum("report", copy)
    assert result.exit_code == 2 and "softnum: error:" in result.stderr and not (copy / "report.html").exists()


def test_files_that_are_not_what_their_names_say(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "tta")
    for name, text, message in (
        ("workloads.json", "{", r"workloads\.json, line 1: not JSON"),
        (
            "workloads.json",
            '{"schema": 1}',
            r"workloads\.json: workload 0 has the unknown key 'schema'.*run softnum tta again",
        ),
        ("workloads.json", '{"schema": 1, "workloads": [{"network": "n"}]}', r"workload 0 lacks 'design'"),
        ("results.json", '{"a": 1,\n]', r"results\.json, line 2: not JSON"),
        ("results.json", "[" * 100_000, r"results\.json: not readable as JSON"),
        ("study.json", '{"comparisons": []}', r"study\.json: comparisons must be a list of tables with a folder each"),
        ("study.json", '{"comparisons": [{"folder": ".."}]}', r"the folder '\.\.' of a comparison is outside"),
        ("study.json", '{"comparisons": [{"folder": "none"}]}', r"none of its comparisons has a results\.json"),
    ):
        (copy / name).write_text(text)
        if name == "workloads.json":  # the results rest on it: its digest is looked at first
            edit(copy, lambda t: t.update(sources=[row for row in t["sources"] if row["role"] != "workloads"]))
        with pytest.raises(ValueError, match=message):
            load_report(copy)
    (copy / "results.json").write_bytes(b"\xff\xfe")
    (copy / "study.json").unlink()
    with pytest.raises(ValueError, match=r"results\.json: not readable as JSON"):
        load_report(copy)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none does not exist; name the folder that softnum tta --out"):
        load_report(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"holds neither results\.json nor study\.json"):
        load_report(tmp_path)
    file = tmp_path / "results.json"
    file.write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"results\.json is a file; name the folder"):
        load_report(file)


def test_a_record_that_went_or_changed(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "tta")
    (copy / "records" / "a-float32" / "seed-1.jsonl").unlink()
    states = {row["path"]: row["state"] for row in table(load_report(copy).page(), "sources").data}
    assert states["records/a-float32/seed-1.jsonl"] == "not found"
    write_record(copy / "records" / "a-float32" / "seed-2.jsonl", "a-float32", 2, 50)
    result = softnum("report", copy)
    assert result.exit_code == 2 and "has changed since" in result.stderr and "SHA-256" in result.stderr


def test_options_that_cannot_be(folder, tmp_path):
    assert (
        "--device-file defines the devices that --device names; add --device NAME"
        in softnum("report", folder, "--device-file", "x").stderr
    )
    assert "did you mean 'v100'" in softnum("report", folder, "--device", "v10").stderr
    assert "is a folder; name a file in it" in softnum("report", folder, "-o", tmp_path).stderr
    (tmp_path / "file").write_text("")
    assert "is a file; name a folder" in softnum("report", folder, "--png", tmp_path / "file").stderr


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.delitem(sys.modules, "vl_convert", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=r"altair, vl-convert-python are not installed: pip install 'softnum\[report\]'"
    ):
        need("altair", "vl_convert")
    with pytest.raises(ValueError, match=r"scikit-learn is not installed: pip install 'softnum\[train\]'"):
        need("sklearn")
