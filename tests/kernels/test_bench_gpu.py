"""The figures of a GPU, whose code is run here in the simulator at toy sizes."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import softnum as sn
from benchmarks import bench_gpu, gpu_training
from benchmarks.gpu_baselines import per_output
from softnum.kernels.device.runtime import _cuda


@pytest.mark.slow
def test_figures(monkeypatch, tmp_path, capsys):
    if not _cuda.SIMULATOR:
        pytest.skip("on a GPU the figures are run by themselves")
    monkeypatch.setattr(gpu_training, "DESIGNS", ("c-wang-fp8",))
    out = tmp_path / "figures" / "gpu.json"
    assert bench_gpu.main(["--side", "4", "--elements", "33", "--steps", "1", "--out", str(out)]) == 0
    kept = json.loads(out.read_text())
    assert "simulator" in kept["about"]["device"]
    figures = {figure["name"]: figure for figure in kept["figures"]}
    assert len(figures) == 8 + 1 + len(bench_gpu.cases()) + 1
    for name, figure in figures.items():
        assert figure["value"] > 0 and figure["differ"] == 0, figure
        assert figure["compared"] == (
            0 if name.startswith("copy") else 16 if "GEMM" in name else 2 if "step" in name else 33
        )
    product = figures["GEMM 4^3, e5m2, product e5m2 -> e6m9"]
    assert product["goal"] == 1.0
    assert set(product["against"]) == {bench_gpu.PLAIN, bench_gpu.PER_OUTPUT}
    said = capsys.readouterr().out
    assert "predicted limit" in said and "equal: 33" in said


def test_kept_figures():
    """They are of the cases that there are, and what docs/gpu.md says of them is so."""
    kept = json.loads((bench_gpu.RECORDS / "nvidia_h200.json").read_text())
    figures = {figure["name"].removeprefix("GEMM 4096^3, "): figure for figure in kept["figures"]}
    assert all(figure["differ"] == 0 for figure in figures.values())
    assert all(figure["value"] >= figure["goal"] for figure in figures.values() if figure["goal"] is not None)
    for case in bench_gpu.cases():
        figure = figures[case.name]
        assert figure["goal"] == case.goal
        if case.instructions:
            assert figure["limit"] == pytest.approx(bench_gpu.limit(case.instructions, *bench_gpu.H200))
            assert figure["value"] < figure["limit"]
        if isinstance(case.unit, sn.MadUnit) and case.unit.accumulator.name not in ("binary32", "q32.0"):
            assert figure["against"][bench_gpu.PLAIN] < 0.5
    copies = {name: figure["value"] for name, figure in figures.items() if figure["unit"] == "of copy"}
    assert copies["quantize float32 -> e5m2, stochastic"] == pytest.approx(0.8, abs=0.05)
    assert all(value == pytest.approx(0.5, abs=0.1) for name, value in copies.items() if "mxfp8" in name)
    for name, figure in figures.items():
        if "MLP" in name:
            assert figure["against"]["the CPU"] == pytest.approx(1, abs=0.2)


def test_wrong_bits_are_told(monkeypatch, tmp_path, capsys):
    real = sn.quantize

    def wrong(x, *args, **options):
        y = real(x, *args, **options)
        return y if options.get("out") is not None or not isinstance(y, np.ndarray) else y + np.float32(1)

    monkeypatch.setattr(sn, "quantize", wrong)
    arguments = ["--elements", "16", "--only", "quantize", "--side", "4", "--out", str(tmp_path / "x.json")]
    if _cuda.SIMULATOR:
        assert bench_gpu.main(arguments) == 1
        assert "16 of 16 DIFFER" in capsys.readouterr().out


def test_refused(monkeypatch, capsys):
    monkeypatch.setattr(_cuda, "SIMULATOR", True)
    assert bench_gpu.main([]) == 2
    assert "NUMBA_ENABLE_CUDASIM is set" in capsys.readouterr().err
    monkeypatch.setattr(_cuda, "SIMULATOR", False)
    monkeypatch.setattr(_cuda, "cuda", SimpleNamespace(is_available=lambda: False))
    assert bench_gpu.main([]) == 2
    assert "there is no GPU" in capsys.readouterr().err


def test_limits(monkeypatch):
    """An H200's: 132 multiprocessors at 1.98 GHz that start 128 instructions a cycle, 64 of them in the ALU."""
    chip = SimpleNamespace(MULTIPROCESSOR_COUNT=132, CLOCK_RATE=1980000)
    monkeypatch.setattr(_cuda, "SIMULATOR", False)
    monkeypatch.setattr(_cuda, "cuda", SimpleNamespace(get_current_device=lambda: chip))
    assert bench_gpu.limit_of(None) is None
    assert bench_gpu.limit_of({"issue": 10}) == pytest.approx(132 * 1.98e9 * 12.8 / 1e12)
    assert bench_gpu.limit_of({"issue": 10, "ALU": 6}) == pytest.approx(132 * 1.98e9 * 64 / 6 / 1e12)


def test_other_emulators_approach(device):
    """The baseline computes what it says: products and sums rounded to two formats."""
    rng = np.random.default_rng(2)
    unit = sn.MadUnit("e6m9", operand="e5m2", product="e5m2")
    a, b = (sn.quantize(rng.standard_normal(shape).astype(np.float32), "e5m2") for shape in ((7, 11), (11, 6)))
    a[:, :3] = sn.quantize(a[:, :3] * np.float32(2.0**-15), "e5m2")
    a[1] = 57344
    a[2, 5] = np.inf
    out = _cuda.to_device(np.full((7, 6), np.nan, np.float32))
    per_output(_cuda.to_device(a), _cuda.to_device(b), out, unit.product, unit.accumulator)
    got, want = _cuda.to_host(out), sn.matmul(a, b, unit)
    assert np.isinf(want).any() and np.isnan(want).sum() < 6
    assert np.array_equal(got.view(np.uint32)[~np.isnan(want)], want.view(np.uint32)[~np.isnan(want)])
    assert np.isnan(got[np.isnan(want)]).all()
