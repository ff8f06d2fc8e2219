"""Large models: their parameters and FLOPs are the published ones; what their layers say of memory and work by hand."""

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train.nets.gpt import GPT, PRESETS, count_parameters
from softnum.tta import architecture, lower, memory_of
from softnum.tta.architectures import Attention, Decoder, ExpertDense, Gate, Router
from softnum.tta.architectures.large_models import decoders
from tests.support.cases import cases

#: words a second and TFLOP/s of a device, as NVIDIA prints both (Megatron-Bridge, docs/performance-summary*.md): their
#: ratio is what it counts for a word
PRINTED = [
    ("llama3-8b", 8192, 37556, 1933), ("llama3-70b", 8192, 4520, 2030), ("llama3-405b", 8192, 999, 2522),
    ("deepseek-v3", 4096, 3848, 961), ("deepseek-v3-mtp", 4096, 6304, 1640), ("qwen3-30b-a3b", 4096, 45275, 1041),
    ("qwen3-235b-a22b", 4096, 6131, 907),
]  # fmt: skip


def test_parameters_are_the_published_ones():
    for name, decoder in decoders().items():
        published = decoder.published
        found = architecture(name, min(decoder.context, 2048)).parameters
        assert found == pytest.approx(published["parameters"], rel=published.get("rounded", 0), abs=0), name
        if "active" in published:  # of two or three digits there, with or without the embedding
            assert decoder.active == pytest.approx(published["active"], rel=0.02), name
        assert decoder.source
    for size in PRESETS:
        assert decoders()[f"gpt-{size}"].architecture().parameters == count_parameters(**GPT(size).options)


def test_parameters_of_tables_by_hand():
    tables = 204_184_588 * 128
    bottom = 13 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128
    cross = 3 * (2 * 3456 * 512 + 3456)
    top = 3456 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1
    assert architecture("dlrm-v2").parameters == tables + bottom + cross + top
    work = lower(architecture("dlrm-v2"), 8, "float32")
    assert work.parameters == tables + bottom + cross + top
    changed = {t.layer: t.elements for t in work.tensors if t.tensor_class == "weight_gradients"}["tables"]
    assert changed == 128 * sum(
        min(8 * hot, rows)
        for hot, rows in zip(
            architecture("dlrm-v2").layers[0].hots, architecture("dlrm-v2").layers[0].rows, strict=True
        )
    )


@cases("row", PRINTED)
def test_flops_are_those_that_are_printed(row):
    name, sequence, words, tera = row
    low, high = (tera - 0.5) * 1e12 / (words + 0.5), (tera + 0.5) * 1e12 / (words - 0.5)
    decoder = decoders()[name]
    counted = 6 * architecture(name, sequence).macs / sequence
    if decoder.experts:  # whose routers they leave out
        routers = (decoder.kinds.count("experts") + decoder.extra) * decoder.hidden * decoder.experts
        counted -= 6 * routers
    assert low * 0.999 <= counted <= high * 1.001


@cases("name", ["megatron-1.7b", "megatron-145.6b", "megatron-1008b"])
def test_flops_are_those_of_the_paper(name):
    """D. Narayanan et al., 2021, equation 3, without what recomputation adds, and for the pairs that a mask leaves."""
    decoder, s = decoders()[name], 2048
    layers, h, words = decoder.layers, decoder.hidden, decoder.vocabulary
    per_layer, attention, last = 72 * s * layers * h * h, 12 * s * layers * h, 6 * s * h * words
    assert 6 * architecture(name, s).macs == per_layer + attention * (s + 1) // 2 + last
    every = decoder.architecture(s, fused=False)
    assert every.macs == architecture(name, s).macs


def test_feature_maps_are_those_of_the_paper():
    """V. Korthikanti et al., 2023, section 4.1: s b h (34 + 5 a s / h) bytes a layer, of which dropout's masks take
    2 s b h and a s^2 b, and its result of the scores 2 a s^2 b, which is not here."""
    s, b, h, a = 128, 2, 64, 4
    decoder = Decoder("gpt", layers=3, hidden=h, heads=a, vocabulary=100, context=s, norm="layer", activation="gelu")
    net = decoder.architecture(s, fused=False)
    work = lower(net, b, "bfloat16")
    held = sum(t.bytes for t in work.tensors if t.tensor_class == "feature_maps" and t.layer.startswith("layer"))
    before = 2 * s * b * h  # the first layer's input is the embedding's result
    after = 2 * s * b * h  # and the last layer's result is the last normalisation's input
    assert held + before - after == 3 * (s * b * h * (34 - 2) + (5 - 3) * a * s * s * b)
    fused = lower(decoder.architecture(s), b, "bfloat16")
    less = sum(t.bytes for t in fused.tensors if t.tensor_class == "feature_maps" and t.layer.startswith("layer"))
    assert held - less == 3 * (2 * a * s * s * b - 2 * 2 * a * s * b)  # two numbers a query in place of the scores
    assert memory_of(fused).peak < memory_of(work).peak


def test_attention_by_hand():
    whole = Attention("a", 4, kv_heads=2)
    assert whole.result(((8, 64),)) == (8, 32)  # heads of 8: 4 of queries, 2 of keys, 2 of values
    rows = whole.products(((8, 64),), 1)
    assert [row.macs for row in rows] == [0] * 6
    assert (rows[0].left, rows[0].right, rows[0].result) == (4 * 8 * 8, 2 * 8 * 8, 4 * 8 * 8)
    causal = Attention("a", 4, kv_heads=2, causal=True, fused=True).products(((8, 64),), 1)
    assert len(causal) == 7
    assert {row.macs for row in causal} == {4 * 36 * 8}  # 36 of 64 pairs
    assert (causal[0].result, causal[1].left) == (0, 0)
    part = Attention("a", 4, kv_heads=2, causal=True, inputs=("q", "kv")).products(((2, 32), (8, 32)), 1)
    assert part[0].macs == 4 * (2 * 9 // 2) * 8  # a quarter of the queries: a quarter of the pairs
    with pytest.raises(ValueError, match="4 heads do not divide"):
        Attention("a", 4, kv_heads=3).result(((8, 64),))


def test_experts_share_rows():
    rows = [(row.m, row.count) for row in ExpertDense("e", 4, 8).products(((10, 16),), 1) if row.stage == "forward"]
    assert rows == [(3, 2), (2, 2)]
    few = [(row.m, row.count) for row in ExpertDense("e", 4, 8).products(((3, 16),), 1) if row.stage == "forward"]
    assert few == [(1, 3)]
    assert Router("r", 4, 2).result(((8, 16),)) == (8, 2)
    with pytest.raises(ValueError, match="even number of features"):
        Gate("g").result(((8, 15),))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"norm": "batch"}, "norm must be rms or layer, got 'batch'"),
        ({"kv_heads": 3}, "3 heads of keys do not divide 4 heads"),
        ({"experts": 4, "chosen": 5}, "a step cannot go to 5 of 4 experts"),
        ({"dense": 3}, "3 of 2 layers"),
        ({"layers": 0}, "layers must be"),
    ],
)
def test_sizes_that_do_not_fit(sizes, message):
    right = {"layers": 2, "hidden": 64, "heads": 4, "vocabulary": 256, "context": 128}
    with pytest.raises(ValueError, match=message):
        Decoder("mine", **{**right, **sizes})


def test_commands_take_them():
    def run(*arguments):
        return CliRunner().invoke(build_app(), list(arguments))

    result = run("estimate", "gpt2", "--device", "a100-80gb", "--precision", "bfloat16", "--sequence", "256")
    assert result.exit_code == 0, result.output
    result = run("memory", "llama3-8b", "--precision", "bfloat16", "--batch", "1", "--optimiser", "adam")
    assert result.exit_code == 0, result.output
    assert "16.06 GB" in result.output  # two bytes a parameter
    result = run("memory", "resnet50", "--sequence", "256")
    assert result.exit_code == 2
    assert "samples of resnet50 have one length" in result.output
    result = run("estimate", "gpt2", "--device", "v100", "--sequence", "2048")
    assert result.exit_code == 2
    assert "1024 rows for 2048 steps" in result.output
