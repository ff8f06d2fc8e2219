"""The recorder of matrix instructions, without a GPU: operands, registers, texts, and the command on a stand-in."""

import hashlib
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.kernels.recording import functions
from softnum.kernels.recording.__main__ import main
from softnum.kernels.recording.device import compiled, text
from softnum.kernels.recording.mma import CODES, FORMATS, INSTRUCTIONS, decoded, differing, encoded, size_of
from softnum.kernels.recording.rows import CHAINED, KINDS, STEPS, at_the_least_exponent, operands, rows
from softnum.kernels.recording.tiles import box, computed
from tests.kernels.dry_run import build, headers
from tests.support.cases import cases

FOLDERS = [Path(__file__).parents[1] / "data" / f"nvidia_{gpu}" for gpu in ("h200", "h100")]
NAMED = {one.file: one for one in INSTRUCTIONS}


def nvrtc():
    pytest.importorskip("cuda.bindings.nvrtc", reason="pip install 'softnum[test]': NVRTC is not installed")


@cases("one", INSTRUCTIONS, ids=lambda one: one.file)
def test_the_compiler_takes_an_instruction(one):
    nvrtc()
    assert one.ptx in text(one)
    assert compiled(text(one), "sm_90a").startswith(b"\x7fELF")


@cases("name", functions.FUNCTIONS)
def test_the_compiler_takes_a_function(name):
    nvrtc()
    assert name.split(".")[0] in functions.FUNCTIONS[name].body
    assert compiled(functions.FUNCTIONS[name].text, "sm_90a").startswith(b"\x7fELF")


def test_what_the_compiler_refuses_is_told():
    nvrtc()
    with pytest.raises(RuntimeError, match="nonsense"):
        compiled("nonsense", "sm_90a")
    with pytest.raises(RuntimeError, match="invalid value for --gpu-architecture"):
        compiled("", "sm_1")


# ---- registers -------------------------------------------------------------------------------------------------------


@cases("one", INSTRUCTIONS, ids=lambda one: one.file)
def test_each_element_lies_in_one_place(one):
    """Of the 16 (or 8) rows of a warp."""
    high = 8 * one.bands
    matrices = [(one.places_a, (high, one.k), one.a, 0), (one.places_d, (high, 8), one.d, 2)]
    if one.kind == "mma":
        matrices.append((one.places_b, (one.k, 8), one.b, 1))
    for (row, column), shape, kind, operand in matrices:
        row, column = np.broadcast_arrays(row, column)
        assert np.array_equal(np.sort((row * shape[1] + column).ravel()), np.arange(shape[0] * shape[1]))
        assert row.shape[1] * size_of(kind) == one.registers[operand] * np.dtype(one.word).itemsize


class ByHand:
    """A device that takes registers for what the PTX ISA says they are, and multiplies on the host.

    Places are written out from its figures, each for a lane and a register: not by `Instruction`.
    """

    capability = (9, 0)
    name = "by hand"
    cuda = "none"

    def run(self, one, a, b, d, steps):
        out = np.array(d)
        for tile in range(len(d)):
            for warp in range(one.warps):
                lanes = slice(32 * warp, 32 * warp + 32)
                total = self.matrix_d(one, d[tile, lanes])
                for step in range(steps):
                    left = self.matrix_a(one, a[tile, step, lanes])
                    right = self.shared_b(one, b[tile, step]) if one.warps == 4 else self.matrix_b(one, b[tile, step])
                    total = self.multiplied(one, left, right, total)
                self.put_d(one, out[tile, lanes], total)
        return out

    def multiplied(self, one, a, b, c):
        raise NotImplementedError

    @staticmethod
    def split(one, word, kind):
        """A register's elements, the lowest bits first."""
        bits = 8 * size_of(kind)
        return [int(word) >> i & (1 << bits) - 1 for i in range(0, 8 * np.dtype(one.word).itemsize, bits)]

    def matrix_a(self, one, registers):
        """a0 is at row lane/4; a1 eight rows below, a2 beside it, a3 below that, and so on. m8n8k4 has a0 alone."""
        found = {}
        for lane in range(32):
            group, thread = divmod(lane, 4)
            for i, word in enumerate(registers[lane]):
                elements = self.split(one, word, one.a)
                n = len(elements)
                below, beside = (0, i) if one.m == 8 else (i % 2, i // 2)
                for j, x in enumerate(elements):
                    found[group + 8 * below, thread * n + j + 4 * n * beside] = x
        return self.filled(found, one.a)

    def matrix_b(self, one, registers):
        """b0 is at column lane/4, b1 further along k."""
        found = {}
        for lane in range(32):
            group, thread = divmod(lane, 4)
            for i, word in enumerate(registers[lane]):
                elements = self.split(one, word, one.b)
                for j, x in enumerate(elements):
                    found[thread * len(elements) + j + 4 * len(elements) * i, group] = x
        return self.filled(found, one.b)

    @staticmethod
    def shared_b(one, words):
        """Core matrices without swizzle: eight rows of 16 bytes, each of a column of B; the second is 128 bytes on."""
        data = np.ascontiguousarray(words).tobytes()
        found = {}
        for column in range(8):
            for byte in range(0, 32, size_of(one.b)):
                at = 128 * (byte // 16) + 16 * column + byte % 16
                x = int.from_bytes(data[at : at + size_of(one.b)], "little")
                found[byte // size_of(one.b), column] = x
        return ByHand.filled(found, one.b)

    @staticmethod
    def places_d(one):
        """(lane, which of its elements, row, column): c0, c1 side by side, c2, c3 eight rows below."""
        for lane in range(32):
            for i in range(2 if one.m == 8 else 4):
                yield lane, i, lane // 4 + (8 if i >= 2 else 0), 2 * (lane % 4) + i % 2

    def matrix_d(self, one, registers):
        elements = [[x for word in lane for x in self.split(one, word, one.d)] for lane in registers]
        return self.filled({(row, column): elements[lane][i] for lane, i, row, column in self.places_d(one)}, one.d)

    def put_d(self, one, registers, matrix):
        elements = registers.view(CODES[one.d])
        for lane, i, row, column in self.places_d(one):
            elements[lane, i] = matrix[row, column]

    @staticmethod
    def filled(found, kind):
        matrix = np.zeros(tuple(max(place) + 1 for place in zip(*found, strict=True)), CODES[kind])
        for place, x in found.items():
            matrix[place] = x
        assert matrix.size == len(found)
        return matrix


class Exactly(ByHand):
    """Each step is the instruction's unit on an H200."""

    def multiplied(self, one, a, b, c):
        a, b, c = decoded(a, one.a), decoded(b, one.b), decoded(c, one.d)
        return encoded_result(sn.matmul(a, b, one.unit("h200"), c), one.d)


def encoded_result(x, kind):
    return np.ascontiguousarray(x, np.float32).view(np.uint32) if kind == "f32" else encoded(x, kind)


@cases("one", INSTRUCTIONS, ids=lambda one: one.file)
def test_rows_go_through_registers(one):
    """Each row's result, of each step, is that of the row's own operands."""
    rng = np.random.default_rng(3)
    given = [rows(rng, one, kind, 3, STEPS) for kind in ("random", "rounding", "codes")]  # nine rows: a tile and one
    a, b, c = (np.concatenate([part[i] for part in given]) for i in range(3))
    got = computed(Exactly(), one, a, b, c)
    assert got.shape == (9, STEPS) and got.dtype == CODES[one.d]
    before = decoded(c, one.d)
    for step in range(STEPS):
        x, y = decoded(a[:, step], one.a), decoded(b[:, step], one.b)
        want = sn.matmul(x[:, None, :], y[:, :, None], one.unit("h200"), before[:, None, None])[:, 0, 0]
        before = decoded(got[:, step], one.d)
        assert not differing(before, want).any()


def test_warps_that_disagree_are_told():
    class Wrong(Exactly):
        def put_d(self, one, registers, matrix):
            super().put_d(one, registers, matrix + np.arange(len(matrix), dtype=matrix.dtype)[:, None])

    one = NAMED["mma_m16n8k16_f32_f16_f16_f32"]
    with pytest.raises(
        RuntimeError, match=r"m16n8k16\.f32\.f16\.f16\.f32: a row's result depends on where in the tile"
    ):
        computed(Wrong(), one, *rows(np.random.default_rng(0), one, "random", 2))


def test_an_instruction_as_a_black_box():
    one = NAMED["mma_m16n8k8_f32_bf16_bf16_f32"]
    f, unit = box(Exactly(), one), one.unit("h200")
    rng = np.random.default_rng(1)
    a, b = (sn.quantize(rng.standard_normal(s), "bfloat16").astype(np.float32) for s in ((3, 19), (19, 5)))
    c = rng.standard_normal((3, 5)).astype(np.float32)
    assert not differing(f(a, b, c), sn.matmul(a, b, unit, c)).any()
    assert not differing(f(a, b), sn.matmul(a, b, unit)).any()
    with pytest.raises(ValueError, match=r"m16n8k8\.f32\.bf16\.bf16\.f32: a number is none of bf16"):
        f(a + 2.0**-20, b)
    shown = CliRunner().invoke(build_app(), ["identify", "--instruction", "mma_m16n8k7"])
    assert shown.exit_code == 2 and "mma_m16n8k8_f32_bf16_bf16_f32" in shown.output


def test_what_fills_an_instruction_up_leaves_zeros_their_signs():
    f = box(Exactly(), NAMED["mma_m8n8k4_f64_f64_f64_f64"])
    minus, none = np.array([[-0.0]]), np.zeros((1, 1))
    assert np.signbit(f(minus, none, minus)) and not np.signbit(f(none, none, minus))


@pytest.mark.slow
@cases("one", INSTRUCTIONS, ids=lambda one: one.file)
def test_instructions_are_identified(one):
    """A chain of them is one unit, of FP8 mma one of chunks: each adds C to the sum of its own products.

    Computed by the unit of one instruction: `box` goes through registers, which a stand-in fills element by element.
    """

    def f(a, b, c=None):
        (m, k), n = a.shape, b.shape[1]
        left, right = np.full((m, -(-k // one.k) * one.k), -0.0), np.zeros((-(-k // one.k) * one.k, n))
        left[:, :k], right[:k] = taken(a, one.a), taken(b, one.b)
        c = taken(np.zeros((m, n)) if c is None else c, one.d)
        for first in range(0, left.shape[1], one.k):
            c = sn.matmul(left[:, first : first + one.k], right[first : first + one.k], one.unit("h200"), c)
        return c

    def taken(x, kind):
        with np.errstate(over="ignore"):
            found = decoded(encoded(np.asarray(x, np.float64), kind), kind).astype(np.float64)
        if differing(found, np.asarray(x, np.float64)).any():
            raise ValueError(f"a number is none of {kind}")
        return found

    found = sn.identify(f, rows=5000).unit
    chunked = one.kind == "mma" and size_of(one.a) == 1 and one.d != "s32"
    assert isinstance(found, sn.ChunkedDotUnit) == chunked
    if chunked:
        assert (found.chunk, found.inner.terms, found.accumulator) == (one.k, one.k // 2, sn.format(FORMATS[one.d]))
    elif isinstance(found, sn.FusedDotUnit):
        want = one.unit("h200")
        assert (found.terms, found.fraction_bits, found.result) == (want.terms, want.fraction_bits, want.result)


# ---- operands --------------------------------------------------------------------------------------------------------


@cases("one", INSTRUCTIONS, ids=lambda one: one.file)
def test_operands(one):
    """The same of the same seed, as many of each kind as were asked for, and of the types' codes."""
    found, other = operands(one, 1, 20), operands(one, 2, 20)
    again = operands(one, 1, 20)
    assert all(np.array_equal(found[name], again[name]) for name in found)
    assert not np.array_equal(found["a"], other["a"])
    count = np.bincount(found["kind"], minlength=len(KINDS))
    usual = [n for n, kind in zip(count, KINDS, strict=True) if not kind.startswith("least") and kind != "ends"]
    assert usual == [20] * 12 and count[KINDS.index("ends")] == 20 * (one.d == "s32")
    assert found["a"].shape == found["b"].shape == (len(found["c"]), 1, one.k)
    assert found["chain_a"].shape == (len(CHAINED), STEPS, one.k) and found["chain_c"].shape == (len(CHAINED),)
    types = {"a": one.a, "b": one.b, "c": one.d}
    assert all(found[f"{chain}{x}"].dtype == CODES[types[x]] for chain in ("", "chain_") for x in types)


@cases("folder, one", [(folder, one) for folder in FOLDERS for one in INSTRUCTIONS
                        if (folder / f"{one.file}.npz").exists()])  # fmt: skip
def test_the_rows_of_gpus_are_drawn_again(folder, one):
    """A seed gives what it gave when they were recorded, so that another GPU can be given the same."""
    manifest = json.loads((folder / "manifest.json").read_text())
    drawn = operands(one, manifest["seed"], 160) | {"chain_kind": np.zeros(len(CHAINED) * 10, np.uint8)}
    with np.load(folder / f"{one.file}.npz") as data:
        kept = {name: data[name] for name in data.files} | {"chain_kind": np.zeros(len(data["chain_c"]), np.uint8)}
    for chain in ("", "chain_"):
        names = [f"{chain}{name}" for name in ("a", "b", "c", "kind")]
        every, some = (
            {b"".join(x.tobytes() for x in row) for row in zip(*(arrays[name] for name in names), strict=True)}
            for arrays in (drawn, kept)
        )
        assert some <= every


@cases("one", [one for one in INSTRUCTIONS if one.d in ("f32", "f16")], ids=lambda one: one.file)
@cases("of_c", [False, True])
def test_sums_at_the_least_exponent(one, of_c):
    """The exact sum is a power of two, or 2^-25 more, and a far smaller power of two that tips how it is rounded."""
    single = one.d == "f32"
    a, b, c = at_the_least_exponent(one, of_c)
    a, b, c = (np.asarray(decoded(x, kind), np.float64) for x, kind in ((a, one.a), (b, one.b), (c, one.d)))
    seen = set()
    for x, y, start in zip(a[:, 0], b[:, 0], c, strict=True):
        terms = [Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True) if p and q] + [Fraction(start)] * of_c
        first, second = sorted(terms, key=abs, reverse=True)
        assert len(terms) == 2 and of_c == (start == first) and (of_c or start == 0)
        m, t = exponent(first), exponent(second)
        assert first == Fraction(2) ** m + (Fraction(1, 2**25) if not single and m > -25 else 0)
        assert second == (-(Fraction(2) ** t) if single else Fraction(2) ** t)
        assert 1 <= m - t <= 42
        seen.add((m, t))
    assert len(seen) == len(c)
    # a last bit that is kept from the floor on, and one below it that would be kept without it
    told = {(m, m - 25) for m in ((-133, -134) if single else (-21, -22))}
    wide_enough = one.a in ("bf16", "tf32") or (one.a == one.d == "f16" and not of_c)
    assert told <= seen if wide_enough else not told & seen


def exponent(x: Fraction) -> int:
    """floor(log2 x) of a positive or negative number."""
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def test_functions_that_a_chip_lacks_are_left_out():
    class Old:
        def elements(self, source, x):
            if "e4m3" in source:
                raise RuntimeError("not on this chip")
            return x

    found, lacking = functions.recorded(Old(), 40)
    assert lacking == [name for name in functions.FUNCTIONS if "e4m3" in name]
    assert [*found] == ["x_f32", *(name for name in functions.FUNCTIONS if "e4m3" not in name)]
    assert found["x_f32"].dtype == np.uint32 and len(found["x_f32"]) == 2 * 6 * 256 + 40 + 10
    assert found["cvt.rn.f16.f32"].dtype == np.uint16 and found["cvt.rn.tf32.f32"].dtype == np.uint32


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_teaches(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("manifest.json", "chain_d", "test_hardware_vectors", "--inputs OTHER"))
    with pytest.raises(SystemExit):
        main([])
    assert "name the folder that the files go to" in capsys.readouterr().err


def test_without_a_gpu(capsys, monkeypatch, tmp_path):
    """The verb says what is needed, and makes no folder."""

    def none(number=0):
        raise OSError("recording needs an NVIDIA GPU")

    monkeypatch.setattr("softnum.kernels.recording.__main__.Device", none)
    run = CliRunner().invoke(build_app(), ["identify", "--record", str(tmp_path / "rows")])
    assert run.exit_code == 2 and "recording needs an NVIDIA GPU" in run.stderr and not (tmp_path / "rows").exists()
    run = CliRunner().invoke(build_app(), ["identify", "numpy:matmul", "--record", "rows"])
    assert run.exit_code == 2 and "name what to identify: one of" in run.stderr


def test_compiling_alone(capsys, monkeypatch):
    monkeypatch.setattr("softnum.kernels.recording.__main__.compiled", lambda source, chip: chip.encode())
    assert main(["--compile-only", "sm_90a"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{name} 6" for name in (*NAMED, *functions.FUNCTIONS)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not which("cc"), reason="the stand-in is built by cc, for Linux")
@pytest.mark.skipif(headers() is None, reason="cuda.h is not installed")
def test_the_command_on_a_stand_in(tmp_path):
    """All is compiled, loaded and launched, and nothing computed: each d is its c. What is recorded can be compared."""
    nvrtc()
    root = Path(__file__).parents[2]
    environment = {**build(tmp_path), "PYTHONPATH": str(root)}

    def run(*arguments):
        command = [sys.executable, "-P", "-W", "error", "-m", "softnum.kernels.recording", "--each", "2", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    done = run(str(tmp_path / "first"))
    assert (done.returncode, done.stderr) == (0, "")
    manifest = json.loads((tmp_path / "first" / "manifest.json").read_text())
    assert (manifest["source"], manifest["capability"], manifest["kinds"]) == ("Stand-in for an H100", "9.0", KINDS)
    assert [entry["name"] for entry in manifest["arithmetics"]] == [*NAMED]
    for entry in manifest["arithmetics"]:
        one, path = NAMED[entry["name"]], tmp_path / "first" / entry["file"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
        given = operands(one, 1, 2)
        with np.load(path) as data:
            assert data["a"].shape == (entry["rows"], one.k) and data["chain_d"].shape == (entry["chains"], STEPS)
            assert np.array_equal(data["a"], given["a"][:, 0]) and np.array_equal(data["d"], given["c"])
    with np.load(tmp_path / "first" / "functions.npz") as data:
        assert data.files == ["x_f32", *functions.FUNCTIONS]
    done = run(str(tmp_path / "second"), "--inputs", str(tmp_path / "first"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(": 0 of ") == len(NAMED) and done.stdout.count("rows differ, 0 of ") == len(NAMED)
