"""The tables of docs/reference/real-files.md, made anew: what softnum reads of real files, beside what these say.

``python -m tests.support.real_files FOLDER`` prints them of a folder of real files, as SOFTNUM_REAL_FILES names one.
What a file says is taken from its text here, by other means than the package's readers.
"""

import gzip
import json
import re
import sys
import tarfile
import tempfile
from pathlib import Path

from softnum.tta import ReachedRule, combine_study, read_accuracy, read_timings
from softnum.tta.outcomes import measured_variant
from softnum.tta.quantities import format_dollars, format_joules, format_seconds

__all__ = ["TABLES", "lines_of"]


def _text(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode("latin-1")


def _files(folder: Path, part: str, *words: str) -> list[Path]:
    found = sorted((folder / part).glob("*.gz")) if (folder / part).is_dir() else []
    return [file for file in found if not words or any(word in file.name.lower() for word in words)]


def _time(file: Path, **options):
    (time,) = read_timings(file, design="d", **options).values()
    return time


# -- MLPerf ------------------------------------------------------------------------------------------------------------
def _clock(line: str) -> float:
    """When a line was written, in seconds, in any of the three forms."""
    found = re.search(r'"time_ms": *([\d.]+)', line)
    if found:
        return float(found[1]) / 1000
    found = re.search(r'"time_s": *([\d.]+)', line)
    return float(found[1] if found else re.search(r":::ML\S+ (?:\w+ )?(\d{9,}(?:\.\d+)?)", line)[1])


def _of_run(text: str, key: str) -> float:
    (line,) = (row for row in text.split("\n") if ":::ML" in row and re.search(rf"\b{key}\b", row))
    return _clock(line)


def _of_metric(file: Path):
    """The run of a log, and the part of its accuracy that it is of, where it has several."""
    try:
        (record,) = read_accuracy(file, design="d").records
        return record, ""
    except ValueError as error:
        part = re.search(r"say which with --metric (\w+)", str(error))
        if part is None:
            raise
    (record,) = read_accuracy(file, design="d", metric=part[1]).records
    return record, f" ({part[1]})"


def mlperf(folder: Path) -> list[tuple[str, list[str]]]:
    rows = []
    for file in _files(folder, "mlperf"):
        version, rest = file.name.removesuffix(".txt.gz").split("_", 1)
        text = _text(file)
        ran = _of_run(text, "run_stop") - _of_run(text, "run_start")
        time, (record, part) = _time(file), _of_metric(file)
        unit, target = record.mlperf.unit, record.mlperf.target
        rule = None if target is None else ReachedRule(direction=target.direction)
        at = None if target is None else rule.iteration(record.evaluations, target.value)
        cells = [
            f"v{version}: {rest.replace('__', '/')}",
            f"{format_seconds(time.seconds)} a{'n' if unit[0] in 'ei' else ''} {unit}",
            "not known" if target is None else f"{target.value:g}{part}", "-" if at is None else f"{at:,}",
            "-" if at is None else format_seconds(at * time.seconds), format_seconds(record.mlperf.seconds),
            format_seconds(ran),
        ]  # fmt: skip
        rows.append((file.name, cells))
    return rows


# -- simulators and profilers ------------------------------------------------------------------------------------------
def _kernels(text: str) -> float:
    clock = float(re.search(r"-gpgpu_clock_domains +([\d.]+):", text)[1]) * 1e6
    return sum(map(int, re.findall(r"^gpu_sim_cycle = +(\d+)", text, re.MULTILINE))) / clock


def _operations(text: str) -> float:
    ops = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X" and event.get("cat") == "Op"]
    return (max(op["ts"] + op["dur"] for op in ops) - min(op["ts"] for op in ops)) / 1e6


def _is_step(event) -> bool:
    return event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")


def _steps(text: str) -> float:
    steps = [event["dur"] for event in json.loads(text)["traceEvents"] if _is_step(event)]
    return sum(steps) / len(steps) / 1e6


#: part of a file's name -> (options, what they are on the command line, seconds by the file's text or None)
_TIMES = {
    "accelsim": ({}, "", _kernels),
    "gpgpusim": ({}, "", _kernels),
    "merged_5": ({"iterations": 5}, "--iterations 5", None),
    "timeline": ({}, "", _operations),
    "timeloop_eyeriss.xml": (
        {"clock": "1 GHz"}, '--clock "1 GHz"', lambda text: max(map(int, re.findall(r"<cycles_?>(\d+)<", text))) / 1e9
    ),
    "timeloop": (
        {"clock": "1 GHz"}, '--clock "1 GHz"', lambda text: int(re.search(r"^Cycles: (\d+)$", text, re.M)[1]) / 1e9
    ),
    "maestro": (
        {"clock": "1 GHz"}, '--clock "1 GHz"',
        lambda text: sum(int(line.split(",")[3]) for line in text.splitlines()[1:]) / 1e9,
    ),
    "kineto": ({}, "", _steps),
}  # fmt: skip


def times(folder: Path) -> list[tuple[str, list[str]]]:
    rows = []
    for file in (file for part in ("gpgpusim", "timeline", "timeloop", "other") for file in _files(folder, part)):
        found = next((entry for name, entry in _TIMES.items() if name in file.name), None)
        if found is None:
            continue
        options, told, by_hand = found
        time, own = _time(file, **options), "-" if by_hand is None else format_seconds(by_hand(_text(file)))
        energy = "" if time.joules is None else f", {format_joules(time.joules)}"
        command = f"`{told}`" if told else ""
        rows.append((file.name, [file.name, command, format_seconds(time.seconds) + energy, own]))
    return rows


# -- measured curves ---------------------------------------------------------------------------------------------------
def dawnbench(folder: Path) -> list[tuple[str, list[str]]]:
    rows = []
    for task, metric, target in (
        ("CIFAR10", "top1Accuracy", 94),
        ("ImageNet", "top5Accuracy", 93),
        ("SQuAD", "f1Score", 0.75),
    ):
        packed = folder / "dawnbench" / f"{task}.tar.xz"
        if not packed.is_file():
            continue
        with tempfile.TemporaryDirectory() as unpacked:
            with tarfile.open(packed) as archive:
                archive.extractall(unpacked, filter="data")
            train = Path(unpacked, task, "train")
            records = read_accuracy(train, metric=metric)
            study = combine_study(
                records, measured_variant(records), target=target, baseline=records.records[0].label, metric=metric
            )
            for place, result in enumerate(study.designs[:5], 1):
                head, *lines = [
                    line.split("\t") for line in (train / f"{result.design}.tsv").read_text("utf-8-sig").splitlines()
                ]
                columns = [name.strip() for name in head]
                reached = (row for row in lines if float(row[columns.index(metric)]) >= target)
                hours = float(next(reached)[columns.index("hours")])
                cost = "-" if result.cost is None else format_dollars(result.cost.to_accuracy.median)
                product = "refused" if result.product is None else format_seconds(result.product.median)
                cells = [
                    f"{task}, {place} of {len(study.designs)}", result.design, format_seconds(result.tta.median), cost,
                    format_seconds(3600 * hours), product,
                ]  # fmt: skip
                rows.append((packed.name, cells))
    return rows


#: name of a table on the page -> (its headings, its rows: a file's name and the cells)
TABLES = {
    "mlperf": (
        ["log", "time", "target", "reached after", "TTA, their product", "run_start to run_stop", "by hand"], mlperf
    ),
    "times": (["file", "options", "softnum timings", "by hand"], times),
    "dawnbench": (["task, place", "entry", "TTA, measured", "cost", "by hand", "iterations x mean time"], dawnbench),
}  # fmt: skip


def lines_of(name: str, folder: Path) -> list[tuple[str, str]]:
    """The lines of a table: the file that each is of, and its text."""
    return [(file, "| " + " | ".join(cells) + " |") for file, cells in TABLES[name][1](folder)]


if __name__ == "__main__":
    for name, (headings, _) in TABLES.items():
        print(f"<!-- table: {name} -->\n| {' | '.join(headings)} |\n|{' --- |' * len(headings)}")
        print("\n".join(line for _, line in lines_of(name, Path(sys.argv[1]))), end="\n\n")
