"""The C library in Verilator (DPI-C) and in Icarus Verilog (VPI), and how it is built."""

import shutil
from pathlib import Path

import pytest

import softnum as sn
from softnum.runtime import _core
from softnum.vectors import VectorSpec, build_simulator_libraries, plan, write
from softnum.vectors.simulators import vpi_include
from tests.support.dpi_calls import icarus, mode_of, run

ROOT = Path(__file__).resolve().parents[2]
DPI = Path(sn.get_include()) / "dpi"
EXAMPLES = ROOT / "examples" / "rtl" / "dpi"
# op, formats, result, options of the vectors, count
SETS = [
    ("multiply", "e5m2", "e5m2", {}, None),
    ("add", "e4m3fn", "e4m3fn", {"rounding": "down", "overflow": "saturate"}, None),
    ("fma", "binary16", "binary16", {"rounding": "up"}, 4000),
    ("add", "e6m9", "e6m9", {"rounding": "stochastic", "stochastic_bits": 12}, 4000),
    ("multiply", ("e4m3fnuz", "e5m2"), "bfloat16", {"rounding": "to_odd", "tininess": "before"}, 3000),
    ("divide", "q4.4", "q4.4", {"overflow": "wrap", "rounding": "stochastic_floor", "stochastic_bits": 8}, 3000),
    ("convert", "binary64", "e2m1fn", {"overflow": "saturate"}, 3000),
    ("sqrt", "binary32", "binary32", {"rounding": "toward_zero"}, 2000),
    ("remainder", "binary8p4se", "binary8p4se", {}, 2000),
    ("tanh", "bfloat16", "bfloat16", {"rounding": "nearest_away"}, 1000),
]


@pytest.fixture(scope="module")
def vector_files(tmp_path_factory):
    """(the bench's arguments, number of vectors) of each set."""
    folder, out = tmp_path_factory.mktemp("vectors"), []
    for number, (op, formats, result, options, count) in enumerate(SETS):
        spec = VectorSpec.make(op, formats, out_fmt=result, **options)
        planned, path = plan(spec, count=count), folder / f"{number}.txt"
        assert write(planned, path, header=False) == planned.count
        text = ",".join((formats,) if isinstance(formats, str) else formats) + f"->{result}"
        mode = mode_of(options.get("rounding", "nearest_even"), options.get("overflow"),
                       options.get("stochastic_bits", 0), options.get("tininess") == "before")  # fmt: skip
        arguments = [f"+vectors={path}", f"+op={op}", f"+format={text}", f"+mode={mode}"]
        out.append((arguments + ["+random"] * (spec.stochastic_bits is not None), planned.count))
    assert sum(count for _, count in out) >= 1e5
    return out


def judge_all(program, vector_files, tmp_path):
    """All sets are right; and one of which a result was changed is not."""
    for arguments, count in vector_files:
        status, text = run(*program, *arguments)
        assert status == 0 and f"{count} vectors, 0 differences" in text, (arguments, text)
    arguments, count = vector_files[2]
    lines = Path(arguments[0].removeprefix("+vectors=")).read_text().splitlines()
    *first, flags = lines[7].split()
    lines[7] = " ".join([*first, f"{int(flags, 16) ^ 1:02X}"])
    (tmp_path / "wrong.txt").write_text("\n".join(lines) + "\n")
    status, text = run(*program, f"+vectors={tmp_path / 'wrong.txt'}", *arguments[1:])
    assert status != 0 and "vector 8:" in text and f"{count} vectors, 1 differences" in text


@pytest.mark.skipif(shutil.which("verilator") is None, reason="no verilator")
def test_dpi_in_verilator(built, vector_files, tmp_path):
    package = [f"+incdir+{built}", built / "softnum_pkg.sv", EXAMPLES / "vectors_dpi.sv", built / "libsoftnum_dpi.so"]
    status, text = run(
        "verilator", "--binary", "--timing", "-Wno-fatal", *package, "-LDFLAGS", f"-Wl,-rpath,{built}", "--top-module",
        "vectors_dpi", "--Mdir", tmp_path / "obj", "-MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0",
    )  # fmt: skip
    assert status == 0, text
    program = tmp_path / "obj" / "Vvectors_dpi"
    judge_all([program], vector_files, tmp_path)
    arguments = vector_files[0][0]
    status, text = run(program, *arguments[:2], "+format=e5m3x", "+mode=0")
    assert status != 0 and "unknown format 'e5m3x'" in text
    status, text = run(program, *arguments[:2], "+format=e2m1fn", "+mode=0")
    assert status != 0 and "is no code of e2m1fn, which has 4 bits" in text


needs_icarus = pytest.mark.skipif(
    shutil.which("iverilog") is None or vpi_include() is None, reason="no iverilog, or no vpi_user.h"
)


@needs_icarus
def test_vpi_in_icarus(built, vector_files, tmp_path):
    status, text = icarus(built, EXAMPLES / "vectors_vpi.v", tmp_path / "bench")
    assert status == 0, text
    judge_all(["vvp", "-M", built, tmp_path / "bench"], vector_files, tmp_path)


BENCH = """module bench;
`include "softnum_modes.vh"
  reg [63:0] r, h, wide;
  reg [7:0] a, b;
  reg [4:0] flags;
  reg [15:0] word;
  reg signed [15:0] n;
  wire [4:0] net;
  initial begin
    a = 8'h3c; b = 8'h42; flags = 0; word = 16'h3838; n = -2; wide = 64'h1_0000_0001;
    h = $softnum_format("e4m3fn");
%s
    $display("came through");
  end
endmodule
"""
SHOWN = [
    ("$softnum_multiply(a, b, h, SOFTNUM_NEAREST_EVEN, 0, flags)", "0000000000000047 00000"),
    ('$softnum_multiply(a, b, "e4m3fn", 0, 0, flags)', "0000000000000047 00000"),
    ("$softnum_divide(a, 8'h00, \"e5m2\", 0, 0, flags)", "000000000000007c 01000"),
    ("$softnum_scalb(8'h38, n, h, 0, 0, flags)", "0000000000000028 00000"),
    ("$softnum_bits(h)", "0000000000000008 00000"),
    ("$softnum_random(0, 0, 2)", f"{_core.philox((0, 0, 0, 0), _core.philox_key(0, 0, 0))[2]:016x} 00000"),
    ("$softnum_from_real(0.1, h, 0, 0, flags)", "000000000000001d 00001"),
    ('$softnum_mac(8\'h38, a, b, "e4m3fn", 0, 0, 0, flags)', f"{int(sn.fma(0x3C, 0x42, 0x38, 'e4m3fn')):016x} 00001"),
    ("$softnum_exact_dot(word, word, 2, 0, h, 0, 0, flags)", "0000000000000040 00000"),
    ('$softnum_fused_dot(word, word, 2, 0, "e4m3fn,e4m3fn,binary32->binary32", SOFTNUM_TOWARD_ZERO, 16, 24, '
     "SOFTNUM_NO_FLOOR, -1, 0, flags)", "0000000040000000 00000"),
    ("$softnum_compare(a, b, h, 0, 0, flags)", "0000000000000000 00000"),
    ("$softnum_compare_less(a, b, h, 0, 0, flags)", "0000000000000001 00000"),
    ('$softnum_fnmsub(a, b, 8\'h38, "e4m3fn", 0, 0, flags)', f"{int(sn.fma(0xBC, 0x42, 0x38, 'e4m3fn')):016x} 00000"),
    ("$softnum_minimum(8'h7f, a, h, SOFTNUM_PROFILE_RISCV, 0, flags)", "000000000000003c 00000"),
    ("$softnum_classify(8'h80, h, SOFTNUM_CLASS_MASK, 0, flags)", "0000000000000008 00000"),
    ('$softnum_to_integer(8\'hfc, "e5m2->u16", SOFTNUM_INTEGER_X86, 0, flags)', "000000000000ffff 10000"),
    ('$softnum_define("narrow", 3, 2, 2, SOFTNUM_NANS_NONE | SOFTNUM_NO_INFINITIES)', "0000000000000800 00000"),
    ('$softnum_add(6\'h0c, 6\'h04, "narrow", 0, 0, flags)', "000000000000000d 00000"),
    # an x or z bit anywhere makes all of it x
    ("$softnum_multiply(8'bx, b, h, 0, 0, flags)", "xxxxxxxxxxxxxxxx xxxxx"),
    ("$softnum_multiply(a, {7'd0, 1'bz}, h, 0, 0, flags)", "xxxxxxxxxxxxxxxx xxxxx"),
    ("$softnum_multiply(a, b, h, 0, 1'bx, flags)", "xxxxxxxxxxxxxxxx xxxxx"),
    ("$softnum_exact_dot({word, 1'bx}, word, 2, 0, h, 0, 0, flags)", "xxxxxxxxxxxxxxxx xxxxx"),
]  # fmt: skip


@needs_icarus
def test_vpi_functions(built, tmp_path):
    lines = [f'    flags = 0; r = {call}; $display("%h %b", r, flags);' for call, _ in SHOWN]
    lines.append('    $display("%f", $softnum_to_real(8\'h47, h, flags));')
    lines.append('    flags = 5\'bx0000; r = $softnum_divide(a, 8\'h00, "e5m2", 0, 0, flags); $display("%b", flags);')
    (tmp_path / "bench.v").write_text(BENCH % "\n".join(lines))
    assert icarus(built, tmp_path / "bench.v", tmp_path / "bench") == (0, "")
    status, text = run("vvp", "-M", built, tmp_path / "bench")
    assert status == 0
    assert text.splitlines() == [*(want for _, want in SHOWN), "3.750000", "x1000", "came through"]


@needs_icarus
@pytest.mark.parametrize(
    "call, says",
    [
        ("$softnum_add(a, b, h)", "$softnum_add takes 6 arguments, got 3"),
        ("$softnum_add(a, b, h, 0, 0, net)", "argument 6, flags, must be a variable of 5 to 64 bits"),
        ("$softnum_add(a, b, h, 0, 0, 0)", "argument 6, flags, must be a variable of 5 to 64 bits"),
        ('$softnum_add("e5m2", b, h, 0, 0, flags)', "argument 1 is a text, where a number is needed"),
        ("$softnum_add(1.5, b, h, 0, 0, flags)", "argument 1 is a real number, where bits are needed"),
        ("$softnum_add(a, b, h, 0, 2.0 * n, flags)", "argument 5 is a real number, where bits are needed"),
        ('$softnum_add(a, b, "e5m3x", 0, 0, flags)', "$softnum_add: unknown format 'e5m3x' (registered names:"),
        ("$softnum_add(a, b, 64'bx, 0, 0, flags)", "argument 3 has unknown bits"),
        ("$softnum_add(a, b, 77, 0, 0, flags)", "0x4d is no handle of softnum_format"),
        ("$softnum_add(wide, b, h, 0, 0, flags)", "a = 0x100000001 is no code of e4m3fn, which has 8 bits"),
        ("$softnum_add({wide, wide}, b, h, 0, 0, flags)", "argument 1 is wider than 64 bits"),
        ("$softnum_add(a, b, h, 16, 0, flags)", "0x10 is no mode"),
        ("$softnum_bits(0)", "0x0 is no handle"),
        ('$softnum_define("e5m2", 5, 2, 15, 0)', "$softnum_define: 'e5m2' names another format already"),
    ],
)
def test_vpi_errors_name_file_and_line_and_end_it(built, tmp_path, call, says):
    (tmp_path / "bench.v").write_text(BENCH % f"    r = {call};")
    assert icarus(built, tmp_path / "bench.v", tmp_path / "bench")[0] == 0
    status, text = run("vvp", "-M", built, tmp_path / "bench")
    assert status != 0 and f"{tmp_path / 'bench.v'}:12: error: " in text and says in text


@needs_icarus
def test_a_bench_compiled_without_the_module_is_told(built, tmp_path):
    (tmp_path / "bench.v").write_text(BENCH % "    r = $softnum_add(a, b, h, 0, 0, flags);")
    assert run("iverilog", "-g2012", "-I", built, "-o", tmp_path / "bench", tmp_path / "bench.v")[0] == 0
    status, text = run("vvp", "-M", built, "-m", "softnum_vpi", tmp_path / "bench")
    assert status != 0 and "iverilog -L FOLDER -m softnum_vpi" in text


# -- building it -------------------------------------------------------------------------------------------------------
def test_build_says_what_is_missing(tmp_path):
    with pytest.raises(ValueError, match="no C compiler 'no-such-cc' is found; install one, or name it"):
        build_simulator_libraries(tmp_path, compiler="no-such-cc")
    with pytest.raises(FileNotFoundError, match="there is no vpi_user.h in"):
        build_simulator_libraries(tmp_path, vpi=str(tmp_path))
    with pytest.raises(ValueError, match=r"(?s)the C compiler failed .*no-such-option"):
        build_simulator_libraries(tmp_path, compiler="cc --no-such-option")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file; name a folder"):
        build_simulator_libraries(tmp_path / "file")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_the_sources_are_c_plus_plus_too(tmp_path):
    """Simulators compile C sources on their command line as C++."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler (c++)")
    command = ["c++", "-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{DPI.parent}"]
    assert run(*command, *sorted(DPI.glob("[!s]*.c"))) == (0, "")
