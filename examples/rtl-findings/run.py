"""Open floating-point designs, verified: vectors, bench and simulation by softnum, and what `check` says of them.

findings.toml states the designs and the runs, and the bugs that the page docs/open-fpus.md shows; recorded.toml has
what was found. The designs are no part of softnum: SOFTNUM_RTL, or --rtl, names the folder that holds them.

    python examples/rtl-findings/run.py --rtl FOLDER                  # all runs, compared with what is recorded
    python examples/rtl-findings/run.py pacogen-add-8 dawsonjon-adder
    python examples/rtl-findings/run.py cvfpu-divsqrt --shown         # the vectors of the page alone
"""

import argparse
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
STATED, RECORDED, PAGE = HERE / "findings.toml", HERE / "recorded.toml", HERE.parents[1] / "docs" / "open-fpus.md"
_MARKS = "<!-- {}: written by examples/rtl-findings/run.py --page -->", "<!-- {}: end -->"


def stated() -> dict:
    """findings.toml: design, run and finding by their names."""
    return tomllib.loads(STATED.read_text(encoding="utf-8"))


def recorded() -> dict:
    """recorded.toml: of each run how many vectors, and of each kind of vectors that differ how many, and the causes."""
    found = tomllib.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    return {name: {"unfilled": 0, "differ": {}} | facts for name, facts in found.items()}


class Run:
    """A run of findings.toml: its bench in a folder, built once."""

    def __init__(self, name: str, rtl: Path, work: Path) -> None:
        told = stated()
        if name not in told["run"]:
            raise SystemExit(f"no run {name!r}; there are {', '.join(told['run'])}")
        self.name, self.run = name, told["run"][name]
        self.design = told["design"][self.run["design"]]
        self.findings = [f for f in told.get("finding", ()) if f["run"] == name]
        self.rtl, self.folder = rtl, work / name

    @property
    def missing(self) -> list[str]:
        """Files of the design that are not in the folder."""
        return [name for name in self.design["files"] if not (self.rtl / name).is_file()]

    def make_bench(self) -> None:
        """Write the bench, by `softnum rtl bench`."""
        design = self.design
        if self.missing:
            named = "--rtl or SOFTNUM_RTL names the folder that holds the designs"
            raise SystemExit(f"{self.name}: no file {self.rtl / self.missing[0]}; {named}")
        sources = [self.rtl / name for name in design["files"]]
        sources += [HERE / design["adapter"]] if "adapter" in design else []
        words = ["rtl", "bench", *sources, "--top", design["top"], *design.get("bench", ()), *self.run.get("bench", ())]
        words += [word for path in design.get("include", ()) for word in ("--include", self.rtl / path)]
        words += [word for key, value in design.get("parameters", {}).items() for word in ("-P", f"{key}={value}")]
        words += [word for text in self.run.get("encode", ()) for word in ("--encode", text)]
        if "encode" in self.run:
            words += [word for text in self.run["of"] for word in ("--case", text)]
        else:
            words += shlex.split(self.run["of"][0])
        before = {path: (path.read_bytes(), path.stat()) for path in self.folder.glob("*.*v*") if path.is_file()}
        _softnum(*words, "--out", self.folder)
        for path, (text, was) in before.items():  # the same bench is not built again
            if path.read_bytes() == text:
                os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def make(self, target: str, count: int | None = None) -> subprocess.CompletedProcess:
        """Make a target of the bench's Makefile."""
        number = self.run["count"] if count is None else count
        words = ["make", "-C", self.folder, target, f"SIM={self.design['simulator']}", f"COUNT={number}",
                 f"SOFTNUM={sys.executable} -m softnum", f"PYTHON={sys.executable}",
                 f"PLUSARGS={self.run.get('plusargs', '')}", f"CHECK={self.run.get('check', '')}",
                 f"VERILATOR_FLAGS={self.design.get('flags', '')}"]  # fmt: skip
        return subprocess.run([str(word) for word in words], capture_output=True, text=True)

    def found(self, count: int | None = None) -> dict:
        """Make bench, vectors, simulation and check: what recorded.toml holds of the run."""
        import json

        self.make_bench()
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        done = self.make("verify", count)
        if not report.exists():
            raise SystemExit(f"{self.name}: {(done.stdout + done.stderr)[-3000:]}")
        return self.told(json.loads(report.read_text()))

    @staticmethod
    def told(told: dict) -> dict:
        """What recorded.toml holds of a report of check."""
        parts = told.get("parts", [told])
        out = {key: told.get(key, 0) for key in ("vectors", "failures", "unfilled")} | {"differ": {}}
        for part in parts:
            if part["failures"]:
                causes = [f"{c['cause']}: {c['detail']}" if c["detail"] else c["cause"]
                          for c in part["causes"] if c["confident"]]  # fmt: skip
                first = part["first"][0]
                out["differ"][kind_of(part)] = {
                    "checked": part["vectors"], "failures": part["failures"], "results": part["result_failures"],
                    "causes": causes, "first": _line_of(first),
                }  # fmt: skip
        return out

    def shown(self) -> list[dict]:
        """Simulate the vectors of the findings: each as it is stated, with ``got`` and ``want`` as they are found."""
        from softnum.vectors import Block, TextLayout

        self.make_bench()
        answers = f"answers-{self.design['simulator']}.txt"
        done = self.make(answers, len(self.run["of"]) * 2000 if "encode" in self.run else 1)
        if done.returncode:
            raise SystemExit(f"{self.name}: {(done.stdout + done.stderr)[-3000:]}")
        spec, header = _spec_of(self.folder / "vectors.txt")
        blocks = [_block_of(spec, finding) for finding in self.findings]
        columns = [_joined(column) for column in zip(*(b.columns for b in blocks), strict=True)]
        block = Block(tuple(columns[:-2]), None, *columns[-2:])
        shown, got = self.folder / "shown.txt", self.folder / "shown-answers.txt"
        shown.write_bytes(header + TextLayout(spec).format(block))
        top, built = self.design["top"], self.folder / "build"
        icarus = self.design["simulator"] == "icarus"
        words = ["vvp", "-n", built / f"tb_{top}.vvp"] if icarus else [built / "verilator" / f"Vtb_{top}"]
        words += [f"+in={shown}", f"+out={got}", "+stalls=0", *self.run.get("plusargs", "").split()]
        subprocess.run([str(word) for word in words], check=True, capture_output=True)
        lines = [line.split() for line in got.read_text().splitlines() if not line.startswith("#")]
        wanted = [line.split() for line in shown.read_text().splitlines() if not line.startswith("#")]
        flags = "--ignore-flags" not in self.run.get("check", "")
        out = []
        for finding, line, want in zip(self.findings, lines, wanted, strict=True):
            width = _digits_of(spec, finding)
            ends = []
            for words in (line, want):
                code, above = words[-2].upper(), words[-2][:-width].upper()
                filled = above == want[-2][:-width].upper()  # what is above a narrow result is right
                ends.append((code[-width:] if filled else code) + (f" {words[-1].upper()}" if flags else ""))
            out.append(finding | {"got": ends[0], "want": ends[1]})
        return out


def kind_of(part: dict) -> str:
    """Operation, mode and formats of a report of check, in a line."""
    formats = part["format"].replace(" ", ",")
    result = "" if part["result_format"] == part["format"] else f"->{part['result_format']}"
    return f"{part['op']} {part['rounding']} {formats}{result}"


def _line_of(failure: dict) -> str:
    operands = " ".join(word["hex"].removeprefix("0x").upper() for word in failure["operands"].values())
    ends = [failure[side]["hex"].removeprefix("0x").upper() for side in ("got", "want")]
    for i, side in enumerate(("got_flags", "want_flags")):
        if failure.get(side):
            ends[i] += f" {failure[side]['hex'].removeprefix('0x').upper().zfill(2)}"
    return f"{operands} got {ends[0]} want {ends[1]}"


def _spec_of(path: Path):
    from softnum.vectors.files.dialects import open_reader
    from softnum.vectors.files.headers import spec_of_file

    with path.open("rb") as file:
        header = open_reader(file, str(path)).header
    lines = [line for line in path.read_bytes().splitlines(True) if line.startswith(b"#")]
    kept = b"".join(line for line in lines if not line.startswith((b"# vectors:", b"# seed:", b"# method:")))
    return spec_of_file(header, str(path)), kept


def _block_of(spec, finding: dict):
    """The vector of a finding, with the right result."""
    import numpy as np

    codes = [int(word, 16) for word in finding["vector"].split()]
    number, part = _part_of(spec, finding)
    operands = tuple(np.array([code], fmt.storage_dtype) for code, fmt in zip(codes, part.formats, strict=True))
    block = part.evaluate(operands)
    return spec.joined(number, block) if spec.op == "mixed" else block


def _part_of(spec, finding: dict):
    """(number, spec) of the operation, mode and formats that a finding is of."""
    parts = list(enumerate(getattr(spec, "parts", (spec,))))
    found = [(number, part) for number, part in parts if kind_of(part.facts()) == finding["of"]]
    if not found:
        raise SystemExit(f"{finding['run']}: it has no {finding['of']!r}")
    return found[0]


def _digits_of(spec, finding: dict) -> int:
    return -(-_part_of(spec, finding)[1].out_fmt.bits // 4)


def _joined(columns):
    import numpy as np

    return np.concatenate(columns)


def _softnum(*words) -> None:
    words = [sys.executable, "-m", "softnum", *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr or done.stdout)


# -- the record and the page -------------------------------------------------------------------------------------------
def record(found: dict[str, dict]) -> None:
    """Write what was found into recorded.toml, other runs as they are."""
    told = recorded() | found
    lines = ["# What `softnum vectors check` said of each run of findings.toml: written by run.py --record.", ""]
    for name in (name for name in stated()["run"] if name in told):
        lines += [f"[{name}]", *(f"{key} = {told[name][key]}" for key in ("vectors", "failures", "unfilled"))]
        for kind, facts in told[name]["differ"].items():
            pairs = ", ".join(f"{key} = {_toml(value)}" for key, value in facts.items())
            lines.append(f'differ."{kind}" = {{ {pairs} }}')
        lines.append("")
    RECORDED.write_text("\n".join(lines), encoding="utf-8")


def _toml(value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, int) else '"' + value.replace('"', "'") + '"'


def tables() -> dict[str, str]:
    """The tables of the page, by their names."""
    told, known = stated(), recorded()
    rows = [
        "| design | operation | vector | got | expected | cause | where | upstream |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for f in told["finding"]:
        design = told["design"][told["run"][f["run"]]["design"]]
        title = f"{design['title']}, {design['source'].partition(',')[0]}"
        cells = (title, f["of"], f"`{f['vector']}`", f"`{f['got']}`", f"`{f['want']}`", f["cause"], f["where"],
                 f.get("upstream", ""))  # fmt: skip
        rows.append("| " + " | ".join(cells).replace("->", "→") + " |")
    runs = ["| run | design | vectors | differ |", "|---|---|---:|---:|"]
    for name, facts in known.items():
        title = told["design"][told["run"][name]["design"]]["title"]
        runs.append(f"| `{name}` | {title} | {facts['vectors']:,} | {facts['failures']:,} |")
    return {"findings": "\n".join(rows), "runs": "\n".join(runs)}


def page_text() -> str:
    """The page with its tables as the files state them."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables().items():
        begin, end = (mark.format(name) for mark in _MARKS)
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    return text


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*", help="runs of findings.toml; all of them")
    parser.add_argument("--rtl", type=Path, default=os.environ.get("SOFTNUM_RTL"), help="the folder of the designs")
    parser.add_argument("--work", type=Path, default=Path("build/rtl-findings"), help="where benches are made")
    parser.add_argument("--shown", action="store_true", help="simulate the page's vectors alone")
    parser.add_argument("--record", action="store_true", help="write what is found into recorded.toml")
    parser.add_argument("--page", action="store_true", help="write the tables into the page, and do nothing else")
    given = parser.parse_args()
    if given.page:
        PAGE.write_text(page_text(), encoding="utf-8")
        return 0
    if given.rtl is None:
        parser.error("name the folder that holds the designs: --rtl FOLDER, or SOFTNUM_RTL")
    wrong = 0
    for name in given.runs or stated()["run"]:
        run = Run(name, given.rtl.resolve(), given.work.resolve())
        if run.missing and not given.runs:
            print(f"{name}: left out, {given.rtl} has no {run.missing[0]}")
            continue
        if given.shown:
            for was, now in zip(run.findings, run.shown(), strict=True):
                same = was["got"] == now["got"] and was["want"] == now["want"]
                wrong += not same
                print(f"{name}, {was['of']}: {was['vector']} got {now['got']} want {now['want']}"
                      f"{'' if same else '; the page says otherwise'}", flush=True)  # fmt: skip
            continue
        found = run.found()
        same = found == recorded().get(name)
        wrong += not (same or given.record)
        print(f"{name}: {found['vectors']} vectors, {found['failures']} differ"
              f"{'' if same else '; recorded.toml says otherwise'}", flush=True)  # fmt: skip
        for kind, facts in found["differ"].items():
            print(f"  {kind}: {facts['failures']} of {facts['checked']}: {'; '.join(facts['causes']) or 'unexplained'}")
        if given.record:
            record({name: found})
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
