"""softnum rtl waves: files that GTKWave and Surfer read, and the process that GTKWave asks."""

import os
import select
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum import reference as ref
from softnum.cli import build_app
from softnum.vectors.waves import answers, wave_bits, wave_text


def waves(*arguments):
    return CliRunner().invoke(build_app(), ["rtl", "waves", *map(str, arguments)])


@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "posit8", "q4.4", "e2m1fn", "e8m0fnu", "takum_linear8"])
def test_files_say_what_codes_mean(tmp_path, name):
    """Both files, read as their manuals say, map every code to its value; and a NaN to itself."""
    fmt = sn.format(name)
    texts = {}
    assert waves(name, "-o", tmp_path / "g.txt").exit_code == 0
    for line in (tmp_path / "g.txt").read_text().splitlines():
        if not line.startswith("#"):
            literal, text = line.split(None, 1)
            assert len(literal) == -(-fmt.bits // 4)
            texts[int(literal, 16)] = text
    assert waves(name, "--viewer", "surfer", "-o", tmp_path / "s.txt").exit_code == 0
    comment, called, bits, *lines = (tmp_path / "s.txt").read_text().splitlines()
    assert (called, bits) == (f"Name: {name}", f"Bits: {fmt.bits}") and comment.startswith("//")
    for line in lines:
        literal, text, color = line.split('"')
        assert texts[int(literal, 16)] == text and color == (" red" if "nan" in text else "")
    codes = np.arange(1 << fmt.bits, dtype=fmt.storage_dtype)
    want = sn.decode(codes, fmt)
    assert len(lines) == len(texts) == len(codes)
    for code, value in zip(codes.tolist(), want, strict=True):
        if np.isnan(value):
            assert texts[code].endswith("nan")
        else:
            assert (float(texts[code]), np.signbit(float(texts[code]))) == (value, np.signbit(value))


def test_a_block_is_its_scale_and_elements():
    fmt = sn.format("e4m3fn")
    rng = np.random.default_rng(2)
    for _ in range(20):
        codes, scale = rng.integers(0, 256, 32).tolist(), int(rng.integers(100, 150))
        word = scale << 256 | sum(code << (8 * i) for i, code in enumerate(codes))
        text = wave_text(word, "mxfp8_e4m3")
        factor, elements = text.split(" * ")
        values = [float(x) for x in elements[1:-1].split()]
        assert float(factor) == ref.decode(scale, "e8m0fnu").fraction
        assert np.array_equal(values, sn.decode(np.array(codes, np.uint8), fmt), equal_nan=True)
    assert wave_bits("mxfp4_e2m1") == 8 + 32 * 4 and wave_bits("nvfp4") == 8 + 16 * 4


def test_the_process_answers_each_line_at_once(tmp_path):
    """As GTKWave asks: a line is written, and answered before the next one is."""
    made = waves("binary32", "-o", tmp_path / "filter.sh")
    assert made.exit_code == 0 and "Translate Filter Process" in made.output
    assert os.access(tmp_path / "filter.sh", os.X_OK)
    environment = {**os.environ, "PYTHONPATH": str(Path(sn.__file__).parents[1])}
    with subprocess.Popen([tmp_path / "filter.sh"], stdin=-1, stdout=-1, env=environment) as process:
        for asked, answer in (
            (b"3FC00000", "1.5"), (b"XXXXXXXX", "XXXXXXXX"), (b"7fc00000", "?red?nan"), (b"80000000", "-0.0"),
            (b"1FF000000", "?red?1FF000000: not 32 bits"), (b"00000001", "1.401298464324817e-45"),
        ):  # fmt: skip
            process.stdin.write(asked + b"\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 60)[0], f"no answer to {asked}"
            assert process.stdout.readline().decode().rstrip("\n") == answer
        process.stdin.close()
        assert process.wait(60) == 0


def test_binary_and_odd_lines():
    assert list(answers(["0011\n", "%0010\n", "$f\n", "zz\n", "-1\n", "1_0\n"], "e2m1fn", "binary")) == [
        "1.5", "1.0", "-6.0", "zz", "-1", "1_0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("e5m3x", "-o", "x"), "unknown format"),
        (("e4m3fn",), "to write with --out"),
        (("binary32", "--viewer", "surfer", "-o", "x"), "binary32 has 32 bits, and a file for Surfer lists every code"),
        (("e4m3fn", "--viewer", "surfer", "--process", "-o", "x"), "Surfer reads a file"),
        (("e4m3fn", "--viewer", "dinotrace", "-o", "x"), "viewer must be one of gtkwave, surfer"),
        (("e4m3fn", "--radix", "octal", "-o", "x"), "radix must be one of hex, binary"),
        (("e4m3fn", "--radix", "octal", "--filter"), "must be one of hex, binary"),
        (("e4m3fn", "-o", "."), "is a folder"),
    ],
)  # fmt: skip
def test_errors(tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    found = waves(*arguments)
    assert found.exit_code == 2 and says in " ".join(found.output.split()), found.output
    assert list(tmp_path.iterdir()) == []
