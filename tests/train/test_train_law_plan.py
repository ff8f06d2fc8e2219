"""Plans of a scaling law's runs: pieces keep to their hours, studies open, designs are what their names say."""

import csv

import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.train import load_design, read_study
from softnum.train.studies.law_plan import HELD_OUT, SIZES, LawPlan, read_seconds, write_plan

PLAN = LawPlan((65536, 131072, 262144), (131072,), seeds=2)
SECONDS = {(size, design): 0.05 for size in (*SIZES, HELD_OUT) for design in PLAN.designs}


def test_pieces_keep_to_their_hours_and_are_studies(tmp_path):
    pieces = write_plan(PLAN, SECONDS, tmp_path, piece_hours=0.1)
    assert all(piece.hours <= 0.1 for piece in pieces if piece.fitted) and not pieces[-1].fitted
    rows = list(csv.DictReader((tmp_path / "plan.csv").read_text().splitlines()))
    assert len(rows) == sum(piece.runs for piece in pieces) == 2 * len(PLAN.cases()) + 2 * 4 * 3
    assert {row["size"] for row in rows if row["piece"] == "held-out"} == {HELD_OUT}
    study = read_study(tmp_path / f"{pieces[-2].name}.toml")
    assert sum(len(one.labels) * len(one.seeds) for one in study.comparisons) == pieces[-2].runs
    assert {one.settings.network_options["sizes"] for one in study.comparisons} == {"300k"}
    assert all(one.settings.samples * 64 in PLAN.tokens for one in study.comparisons)
    assert read_seconds(tmp_path / "seconds.csv") == SECONDS


def test_designs_of_the_plan_are_what_their_names_say(tmp_path):
    write_plan(PLAN, SECONDS, tmp_path)
    wide = load_design(tmp_path / "designs" / "hopper-fp8.toml").layer("block1.ff1").units["forward"]
    assert wide == sn.unit("nvidia_h100_e4m3")  # thirteen bits are an H100's
    narrow = load_design(tmp_path / "designs" / "hopper-fp8-f4-c32.toml").layer("block1.ff1").units["backward_weight"]
    assert (narrow.chunk, narrow.inner.fraction_bits, narrow.inner.truncate_fraction) == (32, 4, 4)


def test_plans_that_cannot_be_are_refused(tmp_path):
    for change, message in (
        ({"tokens": (1024, 2048)}, "three different numbers of tokens"),
        ({"tokens": (1000, 2048, 4096)}, "a multiple of 1024, a batch's, got 1000"),
        ({"sums_tokens": ()}, "narrow sums take runs too"),
        ({"seeds": 0}, "seeds must be a positive number"),
        ({"data": "digits"}, "a language model learns a text"),
        ({"tokens": (1024, 2048, 10**9 // 1024 * 1024)}, "more than the dictionary has"),
    ):
        with pytest.raises(ValueError, match=message):
            LawPlan(**({"tokens": PLAN.tokens, "sums_tokens": PLAN.sums_tokens} | change))
    for hours, message in (
        ({"hours": 0.1}, "machine-hours, and at most 0.1 are allowed"),
        ({"piece_hours": 0.001}, "hours, and a piece at most 0.001"),
        ({"hours": float("nan")}, "hours must be a positive number"),
    ):
        with pytest.raises(ValueError, match=message):
            write_plan(PLAN, SECONDS, tmp_path, **hours)
    with pytest.raises(ValueError, match="no seconds an iteration of a-float32 with 30k"):
        write_plan(PLAN, {}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_plans_from_stated_seconds(tmp_path):
    rows = "".join(f"{size},{design},0.05\n" for size, design in SECONDS)
    (tmp_path / "seconds.csv").write_text("size,design,seconds\n" + rows)
    words = ["law", "plan", tmp_path / "plan", "--seconds", tmp_path / "seconds.csv", "--tokens", "65536,131072,262144"]
    result = CliRunner().invoke(build_app(), [*map(str, words), "--sums-tokens", "131072"])
    assert result.exit_code == 0, result.output
    assert "held-out.toml: 24 runs" in result.stdout and "186 runs, " in result.stdout
    (tmp_path / "seconds.csv").write_text("size,design,seconds\n30k,a-float32,-1\n")
    result = CliRunner().invoke(build_app(), [*map(str, words)])
    assert result.exit_code == 2 and "line 2: seconds must be above zero" in result.stderr
