"""The documentation keeps its word: what pages show runs, what they name exists, and what fills them is right."""

import ast
import re
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

import softnum as sn
from benchmarks import peers
from softnum import reference as ref
from tests.support.cases import cases
from tests.support.page_examples import blocks_of, has_examples, run_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
import figures  # noqa: E402
import gallery  # noqa: E402
import tables  # noqa: E402

PAGES = sorted(DOCS.rglob("*.md"))
WITH_EXAMPLES = [page for page in (ROOT / "README.md", *PAGES) if has_examples(page)]
#: the least number of examples and commands
LEAST = {"README.md": 9, "numerics.md": 60, "rtl.md": 20, "training.md": 25, "c-api.md": 12, "units.md": 30}
GENERATED = sorted(
    {
        line.removeprefix("```{generated} ")
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("```{generated} ")
    }
)


#: Pages whose examples train or simulate for a quarter of a minute and more.
LONG = {
    "docs/reference/vectors-of-an-fpu.md", "docs/tutorials/simulators.md", "docs/tutorials/studies.md",
    "docs/tutorials/training.md", "docs/tutorials/recipes.md", "docs/reference/report.md",
    "docs/reference/memory-and-network.md", "docs/reference/estimates.md",
    "docs/reference/vector-files.md", "docs/identify.md", "docs/tutorials/custom-units.md",
    "docs/tutorials/operators.md", "docs/tutorials/rtl-to-accuracy.md", "docs/reference/formal.md",
    "docs/tutorials/accumulator.md", "docs/fp8-accumulators.md", "docs/tutorials/scaling-law.md",
}  # fmt: skip


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def page_of(page):
    return pytest.param(page, id=name_of(page), marks=pytest.mark.slow if name_of(page) in LONG else ())


@pytest.mark.parametrize("page", [page_of(page) for page in WITH_EXAMPLES])
def test_examples_run(page, tmp_path, monkeypatch):
    (folder := tmp_path / "page").mkdir()
    monkeypatch.chdir(folder)
    assert run_page(page, folder) >= LEAST.get(page.name, 1)


def test_the_runner_catches_what_is_not_so(tmp_path):
    wrong = {
        "value": "```python\n>>> 1 + 1\n3\n```\n",
        "output": "```console\n$ echo one\ntwo\n```\n",
        "exit code": "```console\n$ false\n```\n",
        "no example": "```python\n1 + 1\n```\n",
    }
    for name, text in wrong.items():
        page, folder = tmp_path / f"{name}.md", tmp_path / name
        page.write_text(text)
        folder.mkdir()
        with pytest.raises(AssertionError):
            run_page(page, folder)


def test_blocks_that_are_not_run_say_why():
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        for block in blocks_of(page):
            if block.language in ("sh", "bash", "shell", "pycon"):
                raise AssertionError(f"{page.name}, line {block.line}: use python or console, which are run")
        assert not [line for line in lines if line.startswith("<!-- not run") and not line.endswith(" -->")]


# -- what the pages name -----------------------------------------------------------------------------------------------
def test_tests_that_pages_name_exist():
    named = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for file, test in re.findall(r"(?<!verify/)\b(test_\w+\.py)(?:::(test_\w+))?", text):
            paths = list((ROOT / "tests").rglob(file))
            assert paths, f"{page.name}: {file}"
            functions = [n.name for p in paths for n in ast.parse(p.read_text()).body if isinstance(n, ast.FunctionDef)]
            assert not test or test in functions, f"{page.name}: {file}::{test}"
            named += 1
        for path in re.findall(r"`((?:tests|train|docs|benchmarks|csrc)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{page.name}: {path}"
    assert named >= 15


def test_every_rule_is_on_the_page_of_guarantees():
    page = tables.guarantees()
    for rule, places in tables.rules().items():
        assert all(tables.docstring_of(place) is not None for place in places)
        assert f"| {rule.partition(': ')[2]} |".replace("*", r"\*") in page


def test_every_package_has_a_page_that_leaves_nothing_out():
    for package in (
        "softnum",
        "softnum.reference",
        "softnum.vectors",
        "softnum.torch",
        "softnum.jax",
        "softnum.train",
        "softnum.tta",
        "softnum.kernels",
    ):
        page = DOCS / "api" / f"{package.removeprefix('softnum.')}.md"
        assert f"```{{public-names}} {package}\n:rest:\n```" in page.read_text(encoding="utf-8")


def test_every_extra_is_weighed():
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    rows = re.findall(r"^\| (`.*?) \| +\d+ \|", (DOCS / "dependencies.md").read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == extras - {"docs", "lint", "test", "wheel"}


# -- what fills the pages ----------------------------------------------------------------------------------------------
@pytest.mark.slow  # make docs makes them all
@cases("words", [g for g in GENERATED if not g.startswith("peer")])
def test_generated_parts(words):
    name, *arguments = words.split()
    assert len((tables.MAKERS | figures.MAKERS | gallery.MAKERS)[name](*arguments)) > 100


@cases("name", tables.small_formats())
def test_tables_of_values_by_the_reference(name):
    shown = {}
    for line in tables.values_of(name).splitlines():
        if line.startswith("| `0x"):
            first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            shown |= {int(first.strip("`"), 16) + i: cell for i, cell in enumerate(cells)}
    fmt = sn.format(name)
    assert len(shown) == 1 << (fmt.bits - fmt.signed)
    for code, cell in shown.items():
        value = ref.decode(code, fmt)
        if value.kind != "finite":
            assert cell == value.kind
            continue
        factor, _, power = cell.partition(" * 2^") if " * " in cell else cell.partition("2^")
        assert Fraction(factor or 1) * Fraction(2) ** int(power or 0) == value.fraction


def test_peers():
    """Of the peers that are there: equal results where the page counts them, other answers where it shows some."""
    agreements = list(peers.agreements())
    assert len(agreements) >= 20
    for row in agreements:
        assert row.compared >= 1000
        assert row.differ == 0 or row.peer == "apytypes", row
    for row in peers.differences():
        assert row.peer_result != row.softnum_result, row
    assert set(peers.versions()) >= set(peers.PEERS)
