"""Experts on several ranks: what two all-to-alls do to tokens, results and gradients, and what they leave alone."""

import numpy as np
import pytest

import softnum as sn
from softnum.train import Settings, Tensor, load_design, make_network
from softnum.train.datasets.sets import Text
from softnum.train.datasets.vocabulary import Vocabulary
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.tensor import add
from softnum.train.engine.watch import watching
from softnum.train.layers.attention import softmax
from softnum.train.layers.dispatch import Dispatch, over_wire
from softnum.train.layers.mixture import Mixture, choices, seats
from softnum.train.runs.loop import Run
from tests.support.cases import cases
from tests.support.train_cases import numerics_of

WIRES = [
    ("ring(ranks=2, wire='e4m3fn', own='kept')", None),
    (
        "ring(ranks=2, wire=BlockFormat('e4m3fn', 'binary32', 8))",
        "tree(ranks=2, wire='e5m2', wire_rounding='toward_zero')",
    ),
    (
        "ring(ranks=4, wire='e4m3', wire_overflow='saturate')",
        "ring(ranks=4, wire=BlockFormat('e2m1fn', 'e4m3fn', 16), own='kept')",
    ),
]
BF16 = '[roles]\ndefault = "bfloat16"\nmaster = "binary32"\n'
STOCHASTIC = '[roles]\nactivations = { format = "e5m2", rounding = "stochastic" }\n'


def _moved(c, rows, senders, receivers):
    """Rows as they arrive by `Collective.all_to_all`: each rank's array has a place for every row of each message."""
    ranks, (count, features) = c.ranks, rows.shape
    places = np.arange(count) % (count // ranks)
    arrays = np.zeros((ranks, ranks, count // ranks, features), np.float32)
    arrays[senders, receivers, places] = rows
    return np.stack(c.all_to_all(arrays))[receivers, senders, places]


@cases("dispatch, combine", WIRES)
def test_rows_and_gradients_are_sent_by_all_to_all(dispatch, combine, tmp_path):
    wires, calls = Dispatch.of(dispatch, combine, 4), []
    mixture = Mixture("b", 16, 8, 4, "relu", 4, 2, capacity=0.75, balance=0.0, wires=wires)
    numerics = numerics_of(tmp_path, "", [layer.name for layer in mixture.layers])
    mixture.router.initialise(numerics, 0)
    layer = mixture.router.numerics

    def twice(rows):  # what stands for experts
        calls.append(rows)
        return add(rows, rows, layer)

    mixture.experts = [twice] * 4
    rng = np.random.default_rng(4)
    x = Tensor(rng.standard_normal((12, 16)).astype(np.float32), numerics.backend, requires_gradient=True)
    slope = rng.standard_normal((12, 16)).astype(np.float32)
    y = mixture(x)
    y.backward(slope)
    probabilities = softmax(mixture.router(x), layer).value
    chosen, size = choices(probabilities, 2), mixture.seats(12)
    taken, found = seats(chosen, 4, size)
    assert size == 5 and (found == 4 * size).any()
    at = np.arange(4 * size) // size * wires.ranks // 4  # the rank of each seat's expert
    of = np.where(taken < 12, taken * wires.ranks // 12, at)  # and of its row
    given = _moved(wires.to_experts, np.concatenate([x.value, np.zeros((1, 16), np.float32)])[taken], of, at)
    np.testing.assert_array_equal(np.concatenate([call.value for call in calls]), given)
    results = np.concatenate([_moved(wires.from_experts, given + given, at, of), np.zeros((1, 16), np.float32)])
    weights = np.take_along_axis(probabilities, chosen, 1)[:, :, None]
    np.testing.assert_array_equal(y.value, weights[:, 0] * results[found[:, 0]] + weights[:, 1] * results[found[:, 1]])
    errors = np.zeros_like(given)  # of results, which go to experts as rows do
    for k in range(2):
        seated = found[:, k] < 4 * size
        errors[found[seated, k]] = (weights[:, k] * slope)[seated]
    errors = _moved(wires.to_experts, errors, of, at)
    np.testing.assert_array_equal(np.concatenate([call.gradient for call in calls]), errors + errors)


def _run(tmp_path, text, **options):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    x = np.random.default_rng(1).integers(0, 256, (12, 9))
    data = Text("text", x[:8, :-1], x[:8, 1:], x[8:, :-1], x[8:, 1:], Vocabulary())
    sizes = {"sizes": (16, 24), "depth": 1, "heads": 2, "steps": 8, "experts": 4, "experts_chosen": 2, "capacity": 0.75}
    run = Run(Settings(network="gpt", network_options=sizes | options, data="text", batch=4), load_design(file),
              seed=5, data=data)  # fmt: skip
    taken = []

    def note(event):
        if event.method == "take" and event.stage == "forward":
            taken.append(np.array(event.arguments[1]))

    with watching(run.numerics, note):
        losses = [run.train(iteration, rows)["loss"] for iteration, rows in run.plan(1)]
    return losses, [parameter.value for parameter in run.network.parameters], taken, run


def test_a_wire_that_holds_the_numbers_changes_no_bit(tmp_path):
    for text, wire in ((STOCHASTIC, "binary32"), (BF16, "bfloat16")):
        losses, parameters, *_ = _run(tmp_path, text)
        found = _run(tmp_path, text, expert_dispatch=f"ring(ranks=4, wire={wire!r})")
        assert found[0] == losses
        for mine, other in zip(found[1], parameters, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_a_narrower_wire_changes_numbers_and_leaves_the_first_seats(tmp_path):
    losses, _, taken, _ = _run(tmp_path, BF16)
    found = _run(
        tmp_path, BF16, expert_dispatch="ring(ranks=4, wire='e5m2')", expert_combine="ring(ranks=4, wire='bfloat16')"
    )
    assert found[0] != losses and np.isfinite(found[0]).all()
    first = taken[: len(taken) // 2]  # rows and seats of the first iteration, as the router chose
    assert any((part == 4 * 12).any() for part in first)  # 12 seats each: some rows find none
    for part, other in zip(first, found[2], strict=False):
        np.testing.assert_array_equal(part, other)
    described = found[3].header()["config"]["network"]
    for name, wire in (("expert_dispatch", "e5m2"), ("expert_combine", "bfloat16")):
        assert str(sn.collective(described[name]).wire) == wire and sn.collective(described[name]).ranks == 4
    assert make_network("gpt", **found[3].network.options).options == found[3].network.options


def test_a_stochastic_wire_has_words_of_its_own(tmp_path):
    wire = "ring(ranks=2, wire='e5m2', wire_rounding='stochastic')"
    first, second = (_run(tmp_path, BF16, expert_dispatch=wire)[0] for _ in range(2))
    assert first == second != _run(tmp_path, BF16, expert_dispatch="ring(ranks=2, wire='e5m2')")[0]


def test_blocks_begin_with_each_row():
    rounding = Dispatch.of("ring(ranks=2, wire=BlockFormat('e4m3fn', 'binary32', 8))", None, 2).roundings[0]
    rows = np.random.default_rng(3).standard_normal((3, 12)).astype(np.float32)  # the last block has 4
    got = over_wire(NumpyBackend(), rows, rounding, None)
    want = [sn.quantize(part.astype(np.float64), rounding.format) for row in rows for part in (row[:8], row[8:])]
    np.testing.assert_array_equal(got, np.concatenate(want).astype(np.float32).reshape(3, 12))


@cases(
    "options, says",
    [
        (
            {"expert_dispatch": "ring(ranks=2)"},
            "dispatch is for a mixture of experts; state experts, or leave it out",
        ),
        ({"experts": 4, "expert_combine": "ring(ranks=2)"}, "sends results back; state expert_dispatch"),
        ({"experts": 4, "expert_dispatch": "ring"}, "dispatch: collective: state ranks="),
        ({"experts": 4, "expert_dispatch": 3}, "dispatch: .* is a text, got 3"),
        ({"experts": 4, "expert_dispatch": "ring(ranks=3)"}, "4 experts are no equal parts for 3 ranks"),
        ({"experts": 4, "expert_dispatch": "ring(ranks=2, average='after')"}, "tokens are moved, and .* averages"),
        (
            {"experts": 4, "expert_dispatch": "ring(ranks=2)", "expert_combine": "ring(ranks=4)"},
            "2 ranks and expert_combine 4",
        ),
        ({"experts": 4, "expert_dispatch": "ring(ranks=2)", "expert_combine": "rang(ranks=4)"}, "combine: .*rang"),
        ({"experts": 4, "expert_dispatch": "ring(ranks=2, wire='nvfp4')"}, "a scale of the whole array"),
    ],
)
def test_what_cannot_be_sent(options, says):
    with pytest.raises(ValueError, match=says):
        make_network("gpt", **options)
