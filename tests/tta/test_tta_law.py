"""Scaling laws: a law is found again from its runs, predictions have limits, and files are checked."""

import itertools
import json
import tarfile

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta.law_runs import LawRun, read_runs
from softnum.tta.scaling_law import ScalingLaw, fit_law, read_law

pytest.importorskip("scipy")

A, B, E, a, b = 60.0, 300.0, 1.4, 0.32, 0.37
SIZES = list(itertools.product((3e4, 1e5, 3e5, 1e6), (1e6, 3e6, 1e7, 3e7)))


def runs(noise=0.0):
    rng = np.random.default_rng(4)
    return [LawRun(n, d, (E + A / n**a + B / d**b) * float(np.exp(noise * rng.standard_normal()))) for n, d in SIZES]


@pytest.fixture(scope="module")
def law():
    return fit_law(runs(0.003), bootstrap=25)


def test_a_law_is_found_again_from_its_runs():
    found = fit_law(runs(), bootstrap=0)
    assert np.allclose(found.fitted, (A, B, E, a, b), rtol=2e-3)
    assert found.loss(1e5, 1e7).value == pytest.approx(E + A / 1e5**a + B / 1e7**b, rel=1e-5)
    outlier = [*runs(), LawRun(1e5, 1e7, 9.0)]  # one run that went wrong moves it little
    assert np.allclose(fit_law(outlier, bootstrap=0).fitted[2:], (E, a, b), rtol=0.05)


def test_intervals_hold_what_is_true_and_are_drawn_alike(law):
    for (low, high), true in zip(law.intervals().values(), (A, B, E, a, b), strict=True):
        assert low <= true <= high
    assert fit_law(runs(0.003), bootstrap=3).draws == law.draws[:3] != fit_law(runs(0.003), bootstrap=3, seed=2).draws
    told = law.loss(1e6, 1e8)
    assert told.extrapolated and told.low <= told.value <= told.high and not law.loss(1e5, 1e7).extrapolated
    tokens = law.tokens_to(told.value, 1e6)
    assert tokens.value == pytest.approx(1e8, rel=1e-9) and tokens.low < 1e8 < tokens.high


def test_a_law_is_asked_near_its_runs(law):
    with pytest.raises(ValueError, match=r"2e\+09 tokens are far from the 1e\+06 to 3e\+07 of the runs: .* 1e\+05 to"):
        law.loss(1e5, 2e9)
    with pytest.raises(ValueError, match="2000 parameters are far from"):
        law.loss(2e3, 1e7)
    with pytest.raises(ValueError, match="parameters must be a positive number, got nan"):
        law.loss(float("nan"), 1e7)
    with pytest.raises(
        ValueError, match="a loss of 1.3 is never reached by 100000 parameters: .* the law stays above 2"
    ):
        law.tokens_to(1.3, 1e5)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (slice(5), "needs at least 6 runs, got 5"),
        (slice(8), "the runs have 2 different numbers of parameters, and a power of them needs at least 3"),
    ],
)
def test_too_few_runs_are_refused(chosen, message):
    with pytest.raises(ValueError, match=message):
        fit_law(runs()[chosen])
    with pytest.raises(ValueError, match="must be positive numbers"):
        fit_law([*runs(), LawRun(1e5, 1e6, -1.0)])


def test_runs_that_tell_no_law_are_refused():
    alike = [LawRun(n, 20.01 * n if n > 1e5 else 20 * n, E + A / n**a) for n in np.geomspace(1e4, 1e7, 8)]
    with pytest.raises(ValueError, match="a power of their parameters, such as 20 for each"):
        fit_law(alike, bootstrap=0)
    rising = [LawRun(n, d, 1 + np.log10(d) * np.log10(n)) for n in (1e4, 1e5, 1e6) for d in (1e5, 1e6, 1e7)]
    with pytest.raises(ValueError, match="loss does not fall with more parameters; look for runs whose loss rises"):
        fit_law(rising, bootstrap=5)
    with pytest.raises(ValueError, match="seed must be an integer from 0 on, got -1"):
        fit_law(runs(), seed=-1)


@pytest.mark.parametrize("unit", [1e-6, 1e4])
def test_a_law_has_the_unit_of_its_losses(unit):
    found = fit_law([LawRun(run.parameters, run.tokens, run.loss * unit) for run in runs()], bootstrap=0)
    assert np.allclose(found.fitted, (A * unit, B * unit, E * unit, a, b), rtol=2e-3)


def record(path, parameters, iterations, loss, **config):
    config = {"tokens_per_sample": 64, "parameters": parameters, "batch": 4, "design": {"name": "one"}} | config
    rows = [{"config": config, "seed": 1, "versions": {}}]
    rows += [{"iteration": n, "epoch": 1, "loss": 1.0} for n in range(1, iterations)]
    rows.append({"iteration": iterations, "epoch": 1, "loss": 1.0, "bits_per_byte": loss, "finished": True})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_runs_are_read_from_tables_and_records(tmp_path):
    (tmp_path / "runs.csv").write_text("parameters,flops,loss\n1e6,6e14,4.5\n")
    assert read_runs(tmp_path / "runs.csv") == ([LawRun(1e6, 1e8, 4.5)], [])
    for text, message in (
        ("parameters,loss\n1,2\n", "no column 'tokens'; expected a run a row"),
        ("tokens,loss\n1,2\n", "no column 'parameters'"),
        ("parameters,tokens,loss\n1,2,nan\n", "line 2: loss must be a positive number, got 'nan'"),
    ):
        (tmp_path / "runs.csv").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_runs(tmp_path / "runs.csv")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_runs(tmp_path / "none.csv")
    record(tmp_path / "folder" / "one" / "seed-1.jsonl", 29856, 3, 4.25)
    found = read_runs(tmp_path / "folder", "bits_per_byte").runs
    assert found == [LawRun(29856.0, 3 * 4 * 64.0, 4.25, "one", "one", seed=1)]
    record(tmp_path / "folder" / "one" / "seed-1.jsonl", None, 3, 4.25)
    with pytest.raises(ValueError, match="does not say how many parameters and tokens"):
        read_runs(tmp_path / "folder", "bits_per_byte")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no finished record"):
        read_runs(tmp_path / "empty")


def test_an_archive_is_read_as_the_folders_in_it(tmp_path):
    record(tmp_path / "runs" / "one" / "seed-1.jsonl", 29856, 3, 4.25)
    outside = tmp_path / "seed-2.jsonl"
    outside.write_text((tmp_path / "runs" / "one" / "seed-1.jsonl").read_text())
    archive = tmp_path / "runs.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(tmp_path / "runs", "runs")
        tar.add(outside, "../seed-2.jsonl")
    assert read_runs(archive, "bits_per_byte") == read_runs(tmp_path / "runs", "bits_per_byte")
    whole = archive.read_bytes()
    for content, message in (
        (whole[: len(whole) // 2], "no archive of records: Compressed|not text"),
        (whole[:20], "not text"),
    ):
        archive.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_runs(archive, "bits_per_byte")


def test_a_law_s_file_is_checked(law, tmp_path):
    file = tmp_path / "law.json"
    file.write_text(law.to_json())
    assert read_law(file) == law
    facts = json.loads(law.to_json())
    for change, message in (
        ({"schema": "2"}, "not a law of schema softnum.law/1"),
        ({"more": 1}, "more"),
        ({"draws": [[1, 2]]}, "not a whole law|contradict"),
        ({"draws": []}, "its numbers contradict each other; fit it again"),
        ({"tokens": [5, 1]}, "its numbers contradict each other"),
        ({"confidence": "much"}, "not a whole law"),
    ):
        file.write_text(json.dumps(facts | change))
        with pytest.raises(ValueError, match=message):
            read_law(file)
    file.write_text("{")
    with pytest.raises(ValueError, match="not a law"):
        read_law(file)


def test_commands_fit_and_predict(tmp_path):
    table, out = tmp_path / "runs.csv", tmp_path / "law.json"
    table.write_text("parameters,tokens,loss\n" + "".join(f"{n},{d},{loss!r}\n" for n, d, loss, *_ in runs()))

    def command(*words):
        return CliRunner().invoke(build_app(), ["law", *map(str, words)])

    result = command("fit", table, "--bootstrap", 0, "--out", out)
    assert result.exit_code == 0 and "loss of 16 runs" in result.stdout and "E 1.4" in result.stdout, result.output
    result = command("predict", out, "--parameters", 1e6, "--tokens", 1e8)
    assert result.exit_code == 0 and result.stdout.endswith(f"{E + A / 1e6**a + B / 1e8**b:.4g}, extrapolated\n")
    result = command("predict", out, "--parameters", 1e6, "--tokens", 1e8, "--loss", 3)
    assert result.exit_code == 2 and "give either --tokens" in result.stderr
    assert isinstance(read_law(out), ScalingLaw)
