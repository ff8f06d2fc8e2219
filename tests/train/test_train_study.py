"""Studies: designs x seeds in processes, the same records however they are run."""

import pytest

from softnum.train import DEFAULT_STUDY, Case, Settings, load_design, run_study
from softnum.train.runs.loop import read_rows
from softnum.train.studies.study import DEFAULT_SEEDS, default_cases

SHORT = Settings(network_options={"sizes": (64, 16, 10)}, epochs=1)


@pytest.mark.slow
def test_records_do_not_depend_on_the_processes(tmp_path):
    cases = [Case("a-float32", 128), Case("g-q44-stochastic", 256)]
    steps = []
    one = run_study(cases, SHORT, seeds=(4, 2), out=tmp_path / "one", jobs=1, progress=lambda *step: steps.append(step))
    two = run_study(cases, SHORT, seeds=(4, 2), out=tmp_path / "two", jobs=2)
    assert [path.relative_to(tmp_path / "one") for path in one] == [path.relative_to(tmp_path / "two") for path in two]
    assert [path.name for path in one] == ["seed-4.jsonl", "seed-2.jsonl"] * 2
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert [step[:2] for step in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert steps[0][2:] == ("a-float32, seed 4", True)
    run_study(cases, SHORT, seeds=(4, 2), out=tmp_path / "two", jobs=2, progress=lambda *step: steps.append(step))
    assert [step[3] for step in steps] == [True] * 4 + [False] * 4
    assert [read_rows(path)[0]["config"]["batch"] for path in one] == [128, 128, 256, 256]


def test_a_study_is_widened_without_training_again(tmp_path):
    cases = [Case("a-float32", 128)]
    (first,) = run_study(cases, SHORT, seeds=(1,), out=tmp_path, jobs=1)
    before = first.stat().st_mtime_ns
    assert len(run_study(cases, SHORT, seeds=(1, 2), out=tmp_path, jobs=1)) == 2
    assert first.stat().st_mtime_ns == before
    run_study(cases, SHORT, seeds=(1,), out=tmp_path, jobs=1, force=True)
    assert first.stat().st_mtime_ns > before


def test_cases_with_batch_sizes():
    assert default_cases() == list(DEFAULT_STUDY)
    assert default_cases(["e-e6m3-chunk", "my.toml"]) == [Case("e-e6m3-chunk", 256), Case("my.toml", 32)]
    assert default_cases(["e-e6m3-chunk@8", "my@home.toml"]) == [
        Case("e-e6m3-chunk", 8, "e-e6m3-chunk@8"), Case("my@home.toml", 32),
    ]  # fmt: skip
    for text in ("a-float32@0", "@32"):
        with pytest.raises(ValueError, match=f"'{text}' is not DESIGN@BATCH"):
            default_cases([text])
    assert len(DEFAULT_SEEDS) >= 3


def test_two_designs_of_one_name(tmp_path):
    (tmp_path / "mine.toml").write_text('name = "a-float32"\n')
    with pytest.raises(ValueError, match="two designs of the study are called 'a-float32'"):
        run_study([Case("a-float32"), Case(str(tmp_path / "mine.toml"))], SHORT, seeds=(1,), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_design_at_two_batch_sizes_has_two_labels(tmp_path):
    cases = default_cases(["a-float32@128", "a-float32@256", "a-float32"])
    records = run_study(cases, SHORT, seeds=(1,), out=tmp_path, jobs=1)
    assert [record.relative_to(tmp_path).as_posix() for record in records] == [
        "a-float32@128/seed-1.jsonl", "a-float32@256/seed-1.jsonl", "a-float32/seed-1.jsonl",
    ]  # fmt: skip
    assert [read_rows(record)[0]["config"]["batch"] for record in records] == [128, 256, 32]


@pytest.mark.parametrize(
    ("cases", "seeds", "message"),
    [
        ([], (1,), "at least one design and one seed, got 0 and 1"),
        ([Case("a-float32")], (), "got 1 and 0"),
        ([Case("a-float32")], (1, -2), "seed must be an integer in 0..2\\*\\*64-1, got -2"),
        ([Case("a-float32")], (1, 1), "seeds of a study must differ, got 1, 1"),
        (
            [Case("a-float32"), Case("a-float32", 64)],
            (1,),
            "two cases of the study are called 'a-float32'; .* write a-f",
        ),
        ([Case("a-float33")], (1,), "no design is called 'a-float33'"),
    ],
)
def test_unusable_studies_train_nothing(cases, seeds, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run_study(cases, SHORT, seeds=seeds, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_jobs_must_be_positive(tmp_path):
    for jobs in (-1, 0):
        with pytest.raises(ValueError, match=f"jobs must be positive, got {jobs}"):
            run_study([Case("a-float32")], SHORT, seeds=(1,), out=tmp_path, jobs=jobs)


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """Best accuracy in short runs of the default study's designs, seed 1, at its own batch sizes."""
    out = tmp_path_factory.mktemp("study")
    cases = [case for case in DEFAULT_STUDY if case.design[0] in "acdefg"]
    settings_of = {case.design: Settings(epochs=10 if case.batch > 32 else 3) for case in cases}
    return {
        case.design: max(
            row["accuracy"]
            for path in run_study([case], settings_of[case.design], seeds=(1,), out=out, jobs=1)
            for row in read_rows(path)
            if "accuracy" in row
        )
        for case in cases
    }


def test_the_differences_come_out_of_the_arithmetic(curves):
    assert curves["a-float32"] > 0.95 and curves["c-wang-fp8"] > 0.95
    # the only difference is the length of a sum in e6m3
    assert curves["e-e6m3-chunk"] - curves["d-e6m3-long"] > 0.05
    # the only difference is the rounding mode
    assert curves["g-q44-stochastic"] - curves["f-q44-nearest"] > 0.15


def test_nearest_fixed_point_cannot_move(tmp_path):
    """Why f stays where it began: an error of at most 1/32 rounds to a multiple of 1/16, which is zero."""
    from softnum.train import Numerics, Tensor, make_network
    from softnum.train.datasets.sets import load_data
    from softnum.train.engine.tensor import softmax_cross_entropy

    net = make_network("mlp")
    numerics = Numerics(load_design("f-q44-nearest"), net.layer_names, seed=1)
    net.initialise(numerics)
    data = load_data("digits")
    softmax_cross_entropy(net.forward(Tensor(data.train_x[:32], numerics.backend)), data.train_y[:32]).backward()
    assert not any(parameter.gradient.any() for parameter in net.parameters)
