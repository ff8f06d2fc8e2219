"""Units that the C library for simulators was built with: their dot products against softnum.dot and traces."""

import ctypes
import random
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.vectors import UnitSpec, build_simulator_libraries, plan
from softnum.vectors.built_units import units_text
from softnum.vectors.simulators import vpi_include
from tests.support.cases import cases
from tests.support.dpi_calls import Dpi, finite, icarus, run, word_of

UNITS = {
    "chunks": "MadUnit('e6m9', operand='e5m2', chunk=5)",
    "lanes": "MadUnit('e6m9', operand=('e4m3fn', 'e5m2'), product='e5m2', lanes=4)",
    "tree": "MadUnit('binary16', operand='e5m2', lanes=7, reduction='tree', chunk=10, outer_accumulator='binary32')",
    "pairs": "MadUnit('e6m5', operand='e4m3fn', lanes=11, reduction='pairwise', rounding='up')",
    "kahan": "MadUnit('e5m6', operand='e5m2', compensated='kahan', chunk=6, lanes=2)",
    "random": "MadUnit('e6m5', operand='e5m2', rounding='stochastic', stochastic_bits=9, lanes=3, chunk=8)",
    "both": "MadUnit('e6m5', operand='e5m2', product='e5m3', rounding='stochastic', stochastic_bits=20)",
    "shared": "MadUnit('e6m5', operand='e5m2', product='e5m3', rounding='stochastic', stochastic_bits=4, "
    "random='philox4x32-7/2', lanes=2)",
    "lfsr": "MadUnit('e6m5', operand='e5m2', rounding='stochastic', stochastic_bits=12, random='lfsr16x3', chunk=4)",
    "hart": "MadUnit('e6m5', operand='e5m2', rounding='stochastic', stochastic_bits=12, random='lfsr32@hart')",
    "flushing": "MadUnit('binary16', operand='binary16', flush_inputs=True, flush_results='before', lanes=2)",
    "positive": "MadUnit('binary16', operand='binary16', flush_inputs='positive')",
    "integers": "MadUnit('q16.0', operand='q8.0', overflow='wrap', lanes=2)",
    "own": "MadUnit(FloatFormat(5, 6, bias=10, specials='fn'), operand=FloatFormat(4, 2, bias=5, specials='fnuz'), "
    "chunk=3)",
    "exact": "ExactDotUnit('binary16', operand='e4m3fn')",
    "exact_lfsr": "ExactDotUnit('e6m5', operand='e5m2', rounding='stochastic', stochastic_bits=12, random='lfsr16x3')",
    "exact_hart": "ExactDotUnit('e6m5', operand='e5m2', rounding='stochastic', random='lfsr32@hart')",
    "h100": "nvidia_h100_e4m3",
    "mma": "nvidia_h100_e4m3_mma",
    "after": "FusedDotUnit(4, 12, 'binary32', operand='binary16', output='binary16', c='after')",
    "ordered": "FmaChainUnit('binary32', operand='bfloat16', k_order=(0, 2, 1, 3))",
    "cdna3": "amd_cdna3_fp16",
    "arm": "arm_bfdot",
    "bulk": "GroupedDotUnit(4, 'binary32', operand='bfloat16', reduction='bulk')",
}

BLOCKS = {
    "mx": "BlockDotUnit('binary32', operand='mxfp4_e2m1')",
    "rounded": "BlockDotUnit('bfloat16', operand=(BlockFormat('e4m3fn', 'e4m3fn', 8), "
    "BlockFormat('q2.6', 'e8m0fnu', 8)), product='binary16', rounding='up')",
    "within": "BlockDotUnit('binary32', operand='mxfp8_e5m2', inner=MadUnit('binary16', operand='e5m2', lanes=2))",
    "drawn": "BlockDotUnit('e6m5', operand='mxfp6_e2m3', product='e6m7', rounding='sr', product_rounding='sr', "
    "stochastic_bits=9)",
    "drawn_lfsr": "BlockDotUnit('e6m5', operand='mxfp6_e2m3', product='e6m7', rounding='sr', product_rounding='sr', "
    "stochastic_bits=9, random='lfsr32x3')",
    "drawn_hart": "BlockDotUnit('e6m5', operand='mxfp6_e2m3', rounding='sr', stochastic_bits=9, random='lfsr32@hart')",
    "nvfp4": "BlockDotUnit('binary32', operand='nvfp4')",
    "core": "nvidia_tcgen05_mxf8f6f4",
    "core4": "nvidia_tcgen05_mxf4nvf4",
}
#: 256 values and a NaN among them; four values
WIDE = sn.CustomFormat.from_table([*np.sort(np.random.default_rng(3).normal(size=255)), np.nan], name="wide")
FEW = sn.CustomFormat.from_table([0, 0.25, -1.5, 3.0], name="few")
TABLES = {
    "tables": sn.MadUnit("binary32", operand=WIDE),
    "table_and_float": sn.MadUnit("e6m9", operand=(FEW, "e5m2"), product="e5m3", chunk=3),
}
COUNTED = {"inexact": 1, "underflowed": 2, "overflowed": 4, "invalid": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    path = tmp_path_factory.mktemp("units")
    build_simulator_libraries(path, compiler="cc -O0 -Wall -Wextra -Wshadow -Werror", units=UNITS | BLOCKS | TABLES)
    return path


@pytest.fixture(scope="module")
def dots(folder):
    lib = ctypes.CDLL(str(folder / "libsoftnum_dpi.so"))
    lib.softnum_dpi_message.restype = ctypes.c_char_p
    lib.softnum_dpi_unit.restype = ctypes.c_uint64
    return Dpi(lib)


def any_values(fmt, rng, n):
    """Codes of numbers, and now and then of infinities and NaNs where there are any."""
    codes = finite(fmt, rng, n)
    special = [c for c in (getattr(fmt, "inf_code", None), getattr(fmt, "nan_code", None)) if c is not None]
    if special and rng.random() < 0.2:
        codes[rng.randrange(n)] = rng.choice(special)
    return codes


@cases("name", UNITS)
def test_dot(dots, name):
    """Results for all lengths around lanes and chunks, with C and without; flags as roundings are counted, of fused
    units, whose cuts no count has, as the trace has them."""
    from softnum.mac.presets import unit_of

    unit, rng = unit_of(UNITS[name]), random.Random(name)
    handle = dots.lib.softnum_dpi_unit(name.encode())
    for length in (0, 1, 4, 11, 24):
        for with_c in (False, True):
            a, b = (any_values(f, rng, max(length, 1))[:length] for f in unit.operand)
            c = any_values(unit.c_format, rng, 1)
            key = (rng.getrandbits(32), 0) if "@hart" in UNITS[name] else (rng.getrandbits(64), rng.getrandbits(40))
            values = [sn.decode(x, f) for x, f in zip((a, b), unit.operand, strict=True)]
            start = sn.decode(c, unit.c_format)[0]
            options = {"key": key} if unit.stochastic else {}
            given = word_of(a, unit.operand[0].bits), word_of(b, unit.operand[1].bits)
            got, flags = dots.call("dot", *given, length, int(c[0]), with_c, handle, *key)
            want, stats = sn.dot(*values, unit, *((start,) if with_c else ()), return_stats=True, **options)
            code = int(sn.encode(np.float64(want), unit.result))
            assert got == code, (length, with_c, hex(got), hex(code))
            counted = stats.to_dict()["total"]
            raised = sum(flag for kind, flag in COUNTED.items() if counted[kind])
            if isinstance(unit, sn.FusedDotUnit):
                raised = int(unit.trace(*values, start if with_c else None).flags)
            assert flags == raised, (length, with_c, counted)


@cases("name", BLOCKS)
def test_block_dot(dots, name):
    """Results for lengths around blocks, with C and without: of vectors as files have them, and by matmul, whose flags
    are as the roundings are counted."""
    from softnum.mac.presets import unit_of

    unit, rng = unit_of(BLOCKS[name]), random.Random(name)
    (fa, fb), handle = unit.operand, dots.lib.softnum_dpi_unit(name.encode())
    for length, with_c in ((1, True), (33, False), (64, True)):
        spec = UnitSpec.make("dot", unit, length=length, with_c=with_c)
        (block,) = plan(spec, count=24, seed=length).blocks()
        for i in range(24):
            row = {c.name: np.atleast_1d(x[i]) for c, x in zip(spec.operand_columns, block.operands, strict=True)}
            formats = {"a": fa.element, "b": fb.element, "scale_a": fa.scale, "scale_b": fb.scale}
            words = [word_of(row[column], f.bits) for column, f in formats.items()]
            tensors = [int(row.get(f"tensor_{x}", [0])[0]) for x in "ab"]
            key = (rng.getrandbits(32), 0) if "@hart" in BLOCKS[name] else (rng.getrandbits(64), rng.getrandbits(40))
            c = int(row["c"][0]) if with_c else 0
            got, flags = dots.call("block_dot", *words, length, c, with_c, handle, *key, *tensors)
            if name == "mx" or unit.stochastic:
                x = sn.BlockArray(row["a"][None], row["scale_a"][None], fa, -1)
                y = sn.BlockArray(row["b"][:, None], row["scale_b"][:, None], fb, -2)
                start = sn.Array(row["c"][None], unit.c_format) if with_c else None
                options = {"key": key} if unit.stochastic else {}
                want, stats = sn.matmul(x, y, unit, start, return_stats=True, **options)
                assert got == int(sn.encode(np.float64(want[0, 0]), unit.result)), (i, hex(got))
                counted = stats.to_dict()["total"]
                assert flags == sum(flag for kind, flag in COUNTED.items() if counted[kind]), (i, flags, counted)
            else:
                assert got == int(block.result[i]), (i, hex(got), hex(block.result[i]))


def test_tables_of_values(dots):
    """Operands that are codes of a table: all pairs, and sums."""
    handle = dots.lib.softnum_dpi_unit(b"tables")
    codes = sn.Array(np.arange(256, dtype=np.uint8)[:, None], WIDE)
    want = sn.encode(sn.matmul(codes, codes.T, TABLES["tables"]), "binary32")
    words = [word_of([code], 8) for code in range(256)]
    for i in range(256):
        for j in range(i % 4, 256, 4):
            assert dots.call("dot", words[i], words[j], 1, 0, 0, handle, 0, 0)[0] == int(want[i, j]), (i, j)
    rng, handle = random.Random(1), dots.lib.softnum_dpi_unit(b"table_and_float")
    unit = TABLES["table_and_float"]
    for length in (2, 7) * 20:
        a, b = ([rng.getrandbits(f.bits) for _ in range(length)] for f in unit.operand)
        arrays = [sn.Array(np.array(x, np.uint8), f) for x, f in zip((a, b), unit.operand, strict=True)]
        want = int(sn.encode(sn.dot(*arrays, unit), "e6m9"))
        assert dots.call("dot", word_of(a, 2), word_of(b, 8), length, 0, 0, handle, 0, 0)[0] == want, (a, b)


def test_in_icarus(folder, tmp_path):
    if shutil.which("iverilog") is None or vpi_include() is None:
        pytest.skip("no iverilog, or no vpi_user.h")
    want = int(
        sn.encode(sn.dot([1.25, 8.0, 3.0], [1.25, 1.0, 0.5], sn.MadUnit("e6m9", operand="e5m2", chunk=5)), "e6m9")
    )
    a, b = (sum(int(c) << (8 * i) for i, c in enumerate(sn.encode(x, "e5m2"))) for x in ((1.25, 8, 3), (1.25, 1, 0.5)))
    (tmp_path / "bench.v").write_text(f"""module bench;
  reg [63:0] unit, r, scaled;
  reg [4:0] flags;
  initial begin
    flags = 0;
    unit = $softnum_unit("chunks");
    r = $softnum_dot(24'h{a:x}, 24'h{b:x}, 3, 0, 0, unit, 0, 0, flags);
    $display("%h %b", r[15:0], flags);
    r = $softnum_dot(24'hx, 24'h{b:x}, 3, 0, 0, unit, 0, 0, flags);
    $display("%h %b", r[15:0], flags);
    unit = $softnum_unit("mx");
    scaled = $softnum_block_dot(8'h52, 8'h24, 8'h80, 8'h7F, 2, 0, 0, unit, 0, 0, 0, 0, flags);
    $display("%h", scaled[31:0]);
    unit = $softnum_unit("chunk");
  end
endmodule
""")
    assert icarus(folder, tmp_path / "bench.v", tmp_path / "bench")[0] == 0
    status, text = run("vvp", "-M", folder, tmp_path / "bench")
    assert text.startswith(f"{want:04x} 00000\nxxxx xxxxx\n41200000\n"), text  # 2 * (1 * 2 + 3 * 1)
    assert status != 0 and "$softnum_unit: no unit 'chunk' (known: chunks, lanes" in text


def test_errors(dots, dpi):
    word = word_of([0], 8)
    for handle in (0, 1000, 1 << 63):
        with pytest.raises(ValueError, match="is no handle of softnum_unit"):
            dots.call("dot", word, word, 1, 0, 0, handle, 0, 0)
    with pytest.raises(ValueError, match="the seed of this unit is the number of its LFSR, below 2"):
        dots.call("dot", word, word, 1, 0, 0, dots.lib.softnum_dpi_unit(b"hart"), 1 << 32, 0)
    first = dots.lib.softnum_dpi_unit(b"chunks")
    with pytest.raises(ValueError, match="513 elements of 8 bits are more than a word's 4096 bits"):
        dots.call("dot", word, word, 513, 0, 0, first, 0, 0)
    with pytest.raises(ValueError, match="c = 0x10000 is no code of the unit's c, which has 16 bits"):
        dots.call("dot", word, word, 1, 0x10000, 1, first, 0, 0)
    assert dots.call("dot", word, word, 1, 0x10000, 0, first, 0, 0) == (0, 0)
    blocks = dots.lib.softnum_dpi_unit(b"nvfp4")
    with pytest.raises(ValueError, match="operands are blocks, whose scales softnum_block_dot takes"):
        dots.call("dot", word, word, 1, 0, 0, blocks, 0, 0)
    with pytest.raises(ValueError, match="operands are no blocks; softnum_dot takes them"):
        dots.call("block_dot", *[word] * 4, 1, 0, 0, first, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="0x100000000 is no scale of an array, which has 32 bits"):
        dots.call("block_dot", *[word] * 4, 1, 0, 0, blocks, 0, 0, 1, 1 << 32)
    with pytest.raises(ValueError, match="1025 elements of 4 bits are more"):
        dots.call("block_dot", *[word] * 4, 1025, 0, 0, blocks, 0, 0, 1, 1)
    dpi.lib.softnum_dpi_unit.restype = ctypes.c_uint64
    assert dpi.lib.softnum_dpi_unit(b"chunks") == 2**64 - 1
    assert "no unit 'chunks' (known: none); softnum rtl build --unit NAME=UNIT adds it" in dpi.message()


@cases(
    "name, unit, says",
    [
        ("2x", "MadUnit('e6m9', operand='e5m2')", "a name is of 1 to 40 letters"),
        ("x", "MadUnit('e6m9', operand='e5m2', rounding='sr', random='given')", "random='given' has no words"),
        ("x", "MadUnit('e6m9', operand='posit8')", "unit x: no sn_format describes posit8"),
        ("x", "BlockDotUnit('e5m2', operand='mxfp4', inner=MadUnit('e5m2', operand='e2m1fn', rounding='sr'))",
         "unit x: blocks whose products are added with random bits"),
        ("x", sn.ExactDotUnit("binary32", operand=FEW), "tables are operands of a MadUnit alone"),
        ("x", "no_such_preset", "no_such_preset"),
        ("x", "ChunkedDotUnit('binary32', inner=ExactDotUnit('binary32', operand='e5m2'), chunk=4)", "ChunkedDotUnit"),
    ],
)  # fmt: skip
def test_units_that_are_not_taken(name, unit, says):
    with pytest.raises(ValueError, match=says):
        units_text({name: unit})


def test_the_option(tmp_path):
    found = CliRunner().invoke(build_app(), ["rtl", "build", "--out", str(tmp_path), "--unit", "mine"])
    assert found.exit_code == 2 and "--unit takes NAME=UNIT, each name once, got 'mine'" in found.output
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine.py").write_text("import softnum as sn\nother = 3\n")
    found = CliRunner().invoke(
        build_app(), ["rtl", "build", "--out", str(tmp_path), "--unit", f"x={tmp_path}/mine.py:other"]
    )
    assert found.exit_code == 2 and "mine.py:other must be a unit, got int" in found.output
