"""Statistics of a run and the explanation of an iteration: they are right, and change no bit."""

import dataclasses
import inspect
import itertools
import json

import numpy as np
import pytest

import softnum as sn
from softnum.train import Settings, explain, load_design, run
from softnum.train.designs import RoleRounding
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.watch import BINARY64, CARRIER, EXACT, ROUNDING, watching
from softnum.train.runs.loop import Run, read_rows
from softnum.train.runs.record import read_lines
from softnum.train.runs.statistics import StatisticsFile, TensorStatistics

SHORT = Settings(network_options={"sizes": (64, 16, 10)}, epochs=3, batch=128)  # ten iterations an epoch
LSTM = Settings(network="lstm", epochs=1, batch=256)


def statistics_of(record):
    return record.with_suffix(".statistics.jsonl")


def test_every_method_of_the_backend_is_said_to_round_or_not():
    public = {name for name, _ in inspect.getmembers(NumpyBackend, inspect.isfunction) if not name.startswith("_")}
    groups = [ROUNDING, EXACT, CARRIER, BINARY64]
    assert public - {"check_room", "finish"} == set().union(*groups)  # which compute nothing
    assert all(not first & second for first, second in itertools.combinations(groups, 2))


@pytest.mark.parametrize("name", ["a-float32", "c-wang-fp8", "g-q44-stochastic", "h-posit8"])
def test_statistics_change_no_bit(name, tmp_path):
    design = load_design(name)
    settings = dataclasses.replace(SHORT, optimiser="adamw", clip_norm=0.1) if name == "a-float32" else SHORT
    plain = run(design, settings, seed=1, out=tmp_path / "plain").read_bytes()
    record = run(design, settings, seed=1, out=tmp_path / "watched", statistics=7)
    assert record.read_bytes() == plain
    header, *rows = read_lines(statistics_of(record))
    assert header["every"] == 7 and sorted({row["iteration"] for row in rows}) == [1, 8, 15, 22, 29]
    assert {row["layer"] for row in rows} == {"fc1", "fc2"}


def test_an_lstms_elements_are_counted(tmp_path):
    record = run(load_design("a-float32"), LSTM, seed=1, out=tmp_path, statistics=100)
    rows = [row for row in read_lines(statistics_of(record))[1:] if row["role"] == "elementwise"]
    assert {row["layer"] for row in rows} == {"lstm.hidden"}
    assert sum(row["roundings"] for row in rows) > 100


def test_counts_are_those_of_the_values():
    fmt = sn.format("e4m3fn")
    before = np.array([0.0, -0.0, 1e-9, 1.0625, -500.0, np.inf, np.nan, 3.0, -0.001953125])
    after = sn.quantize(before, fmt, overflow="saturate")
    tensor = TensorStatistics("fc1", "errors", "e4m3fn", (9,))
    tensor.add(before, after, fmt)
    row = tensor.describe(4)
    assert row == {
        "iteration": 4, "layer": "fc1", "role": "errors", "format": "e4m3fn", "shape": [9], "roundings": 1,
        "elements": 9, "saturated": 2, "underflowed": 1, "infinities": 0, "nans": 1, "zeros": 2, "span": [-9, 8],
        "relative_error": row["relative_error"], "exponents": [[-30, 1], [-9, 1], [0, 1], [1, 1], [8, 1]],
    }  # fmt: skip
    finite = np.isfinite(before) & np.isfinite(after)
    want = np.linalg.norm((after - before)[finite]) / np.linalg.norm(before[finite])
    assert np.isclose(row["relative_error"], want, rtol=1e-12)
    tensor.add(before, after, fmt)
    again = tensor.describe(4)
    assert (again["roundings"], again["elements"], again["saturated"]) == (2, 18, 4)
    assert np.isclose(again["relative_error"], want, rtol=1e-12)


@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "q4.4", "uq2.6", "dlfloat16", "e2m1fn", "binary64"])
def test_spans_are_the_exponents_of_the_ends(name):
    from softnum.train.runs.statistics import _span

    fmt = sn.format(name)
    smallest = float(sn.decode(np.array([1], fmt.storage_dtype), fmt)[0])  # the code after 0
    assert _span(fmt) == (np.frexp(smallest)[1] - 1, np.frexp(float(fmt.max))[1] - 1)


def test_errors_of_products_and_updates_are_against_exact_results(tmp_path):
    """One iteration under a design with coarse sums, each statistic computed once more from what was rounded."""
    work, seen = Run(SHORT, load_design("e-e6m3-chunk"), 1), []
    from softnum.train.runs.statistics import Watch

    watch = Watch()

    def listen(event):
        seen.append(event)
        watch(event)

    with watching(work.numerics, listen):
        work.train(1, np.arange(128))
    (forward,) = [t for k, t in watch.tensors.items() if k[:2] == ("fc2", "forward")]
    event = next(e for e in seen if e.method == "matmul" and e.layer == "fc2")
    a, b, _, c = (np.asarray(part, np.float64) for part in (*event.arguments[:2], 0, event.arguments[3]))
    exact = a @ b + c  # in binary64: 3 bits of precision are far coarser
    want = np.linalg.norm(event.result - exact) / np.linalg.norm(exact)
    assert 0.001 < want and np.isclose(forward.describe(1)["relative_error"], want, rtol=1e-6)
    update = next(e for e in seen if e.place == "update.momentum")
    assert isinstance(update.rounding, RoleRounding) and update.unit is None


def interrupt_at(stop):
    def progress(iteration, total, accuracy):
        if iteration == stop:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("stop", [4, 10, 23])
def test_statistics_of_an_interrupted_run_end_with_the_same_bytes(stop, tmp_path):
    design = load_design("c-wang-fp8")
    whole = run(design, SHORT, seed=1, out=tmp_path / "whole", statistics=3)
    with pytest.raises(KeyboardInterrupt):
        run(design, SHORT, seed=1, out=tmp_path / "cut", statistics=3, progress=interrupt_at(stop))
    cut = tmp_path / "cut" / "c-wang-fp8" / "seed-1.jsonl"
    with open(statistics_of(cut), "ab") as file:
        file.write(b'{"iteration": 2')  # torn
    run(design, SHORT, seed=1, out=tmp_path / "cut", statistics=3)
    assert cut.read_bytes() == whole.read_bytes()
    assert statistics_of(cut).read_bytes() == statistics_of(whole).read_bytes()


def test_statistics_that_are_not_there_are_not_made_up(tmp_path):
    design = load_design("a-float32")
    record = run(design, SHORT, seed=1, out=tmp_path)
    kept = record.read_bytes()
    with pytest.raises(ValueError, match=r"seed-1.jsonl is finished, .*statistics every 5 iterations; use --force"):
        run(design, SHORT, seed=1, out=tmp_path, statistics=5)
    run(design, SHORT, seed=1, out=tmp_path, statistics=5, force=True)
    assert record.read_bytes() == kept
    run(design, SHORT, seed=1, out=tmp_path, statistics=5)  # they are there now
    run(design, SHORT, seed=1, out=tmp_path)
    with pytest.raises(ValueError, match="statistics every 6 iterations"):
        run(design, SHORT, seed=1, out=tmp_path, statistics=6)
    other = dataclasses.replace(SHORT, learning_rate=0.05)
    run(design, other, seed=1, out=tmp_path, force=True)
    assert not statistics_of(record).exists()  # of the record that was replaced


def test_a_run_begun_without_statistics_starts_again_with_them(tmp_path):
    design = load_design("a-float32")
    with pytest.raises(KeyboardInterrupt):
        run(design, SHORT, seed=1, out=tmp_path, progress=interrupt_at(15))
    record = run(design, SHORT, seed=1, out=tmp_path, statistics=10)
    assert {row["iteration"] for row in read_lines(statistics_of(record))[1:]} == {1, 11, 21}
    assert record.read_bytes() == run(design, SHORT, seed=1, out=tmp_path / "plain").read_bytes()


@pytest.mark.parametrize("every", [0, -1, 1.5, True])
def test_unusable_intervals(every, tmp_path):
    with pytest.raises(ValueError, match="statistics must be a positive number of iterations"):
        StatisticsFile(tmp_path / "seed-1.jsonl", every, {})


def test_the_picture_is_the_same_each_time(tmp_path):
    from softnum.train.inspect.plot import draw_statistics

    record = run(load_design("h-posit8"), SHORT, seed=1, out=tmp_path, statistics=15)
    first = draw_statistics(statistics_of(record))
    assert first.startswith(b"\x89PNG") and first == draw_statistics(statistics_of(record))
    with pytest.raises(ValueError, match="holds no statistics of a run"):
        draw_statistics(record)


# -- explain -----------------------------------------------------------------------------------------------------------


def test_a_network_of_images_is_listed_and_counted(tmp_path):
    """Convolutions are the GEMMs of the record; batch normalisation shows its roundings."""
    design, settings = load_design("e-e6m3-chunk"), Settings(network="resnet", batch=4, epochs=1)
    work, steps = Run(settings, design, 1), explain(settings, design).steps
    gemms = work.header()["config"]["gemms"]
    ours = {}
    for step in steps:
        if step.unit is not None and not (step.operation == "matmul" and step.shape[0] == 1):
            ours[step.layer, step.role] = ours.get((step.layer, step.role), 0) + step.flops
    assert ours == {(g["layer"], g["pass"]): 2 * g["M"] * g["N"] * g["K"] for g in gemms}
    assert any(step.role == "statistics" for step in steps)
    for step in steps:
        assert step.role is not None or step.rounding in ("exact", "binary64", "carrier")


@pytest.mark.parametrize("name", ["c-wang-fp8", "h-posit8", "a-float32"])
def test_products_are_the_gemms_of_the_record(name):
    design, settings = load_design(name), Settings(batch=32)
    steps = explain(settings, design).steps
    work = Run(settings, design, 1)
    products = [step for step in steps if step.unit is not None]
    sizes = [(s.layer, s.role, *s.shape, s.operands[0][1][1]) for s in products if s.shape[0] > 1]
    gemms = [(g["layer"], g["pass"], g["M"], g["N"], g["K"]) for g in work.header()["config"]["gemms"]]
    assert sizes == gemms
    assert sum(s.flops for s in products if s.shape[0] > 1) == sum(2 * m * n * k for _, _, m, n, k in gemms)
    for step in products:
        layer = work.header()["config"]["design"]["layers"][step.layer]
        assert step.unit == layer["units"][step.role]


def test_every_rounding_is_the_roles_of_its_layer():
    design = load_design("c-wang-fp8")
    for optimiser in ("sgd", "adamw", "lamb", "lars"):
        steps = explain(Settings(optimiser=optimiser), design).steps
        for step in steps:
            if step.role is None or step.unit is not None or step.role == "start":
                continue
            rounding = design.layer(step.layer, first=step.layer == "fc1").roles[step.role]
            assert step.format == str(rounding.format)
            assert step.rounding == ("exact" if step.operation == "keep" else rounding.rounding)
        numerics = Run(Settings(optimiser=optimiser), design, 1).optimisers["all"].roles
        assert set(numerics) <= {step.role for step in steps}


def test_nothing_is_silently_binary64():
    """What has no role is exact, or in the list of what is binary64."""
    explanation = explain(Settings(optimiser="lars", clip_norm=1e-3), load_design("c-wang-fp8"))
    for step in explanation.steps:
        assert step.role is not None or step.rounding in ("exact", "binary64")
    names = {step.operation for step in explanation.binary64}
    assert names == {"softmax_cross_entropy", "cross_entropy_error", "divide", "norm"}
    assert "in binary64 whatever the design says: softmax_cross_entropy" in str(explanation)


def test_bytes_are_of_the_formats():
    steps = explain(Settings(batch=32), load_design("c-wang-fp8")).steps
    first = next(step for step in steps if step.unit is not None)
    assert first.operands == (("e6m9", (32, 64)), ("e5m2", (64, 128)), ("e6m9", (128,)))
    assert first.bytes == 32 * 64 * 2 + 64 * 128 + 128 * 2 + 32 * 128 * 2
    velocity = next(step for step in steps if step.role == "update.momentum")
    assert [name for name, _ in velocity.operands] == ["e6m9", "e6m9"]


@pytest.mark.parametrize("network", ["vgg-small", "resnet", "transformer", "cifar10-cnn"])
def test_formats_follow_every_array(network, tmp_path):
    """Where everything is in one format, no operand is in another but samples, losses and constants."""
    (tmp_path / "one.toml").write_text('[roles]\ndefault = "e6m9"\n[units]\n' + "\n".join(
        f'{key} = {{ accumulator = "e6m9" }}' for key in ("forward", "backward_data", "backward_weight")
    ))  # fmt: skip
    options = {"norm": "group"} if network == "resnet" else {}
    settings = Settings(network=network, network_options=options, batch=2, samples=2, epochs=1)
    steps = explain(settings, load_design(tmp_path / "one.toml")).steps
    for step in steps:
        named = {name for name, _ in step.operands}
        if step.unit is not None or step.operation in (
            "add",
            "subtract",
            "multiply",
            "fma",
            "keep",
            "permute",
            "pixels",
        ):
            images = step.operation == "permute" and named == {"binary64"}  # samples
            assert named == {"e6m9"} or images or (step.operation, step.rounding) == ("add", "carrier"), step
        if step.operation == "put":
            assert step.format == "e6m9"


def test_an_explanation_is_plain_data_and_a_table():
    explanation = explain(LSTM, load_design("a-float32"))
    rows = json.loads(json.dumps(explanation.to_rows()))
    assert len(rows) == len(explanation.steps) and sum(row["flops"] for row in rows) == explanation.flops
    lines = str(explanation).splitlines()
    assert lines[0].split() == ["layer", "role", "operation", "operands", "result", "rounding", "flops", "bytes"]
    assert len(lines) >= len(rows) + 3
    assert {row["operation"] for row in rows} >= {"tanh", "sigmoid", "multiply", "add", "matmul", "part"}


def test_the_iteration_that_is_explained_has_an_update(tmp_path):
    file = tmp_path / "scaled.toml"
    file.write_text('[roles]\ndefault = "binary32"\nerrors = "e5m2"\n[loss]\nscale = "dynamic"\ninitial = 1e8\n')
    assert any(step.role == "update.weight" for step in explain(SHORT, load_design(file)).steps)


def test_an_operator_of_the_users_own_is_in_the_list(tmp_path):
    (tmp_path / "half.tile").write_text("function (X) -> (Y) { Y = X * 0.5; }\n")
    (tmp_path / "own.toml").write_text('operators = { relu = "half.tile" }\n[roles]\ndefault = "bfloat16"\n')
    steps = explain(SHORT, load_design(tmp_path / "own.toml")).steps
    own = [step for step in steps if step.rounding == "operator"]
    assert [step.layer for step in own] == ["fc1", "fc1"] and own[0].role == "elementwise"
    record = run(load_design(tmp_path / "own.toml"), SHORT, seed=1, out=tmp_path, statistics=20)
    assert read_rows(record)[-1]["finished"]
