"""Look-up tables: what they hold, and that each file format reads back as it should."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.vectors import ROM_FORMATS, make_rom, write_rom

READ_BACK = """module bench;
  reg [%d:0] table_[0:%d];
  integer i;
  initial begin
    $%s("%s", table_);
    for (i = 0; i < %d; i = i + 1) $display("%%h", table_[i]);
  end
endmodule
"""


def read_mif(text):
    """As Intel's manual has it: comments from -- on, settings, then address : word; pairs."""
    text = re.sub(r"--.*", "", text)
    settings = dict(re.findall(r"(\w+)\s*=\s*(\w+)\s*;", text))
    assert settings["ADDRESS_RADIX"] == settings["DATA_RADIX"] == "HEX"
    content = re.fullmatch(r".*CONTENT\s+BEGIN(.*)END;\s*", text, re.DOTALL)[1]
    words = {int(a, 16): int(w, 16) for a, w in re.findall(r"(\w+)\s*:\s*(\w+)\s*;", content)}
    assert len(words) == int(settings["DEPTH"]) and max(words.values()) >> int(settings["WIDTH"]) == 0
    return [words[i] for i in range(len(words))]


def read_coe(text):
    """As AMD's manual has it: comments from ; in column 1, a radix, then words with commas between, and a semicolon."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith(";"))
    found = re.fullmatch(r"\s*memory_initialization_radix=(\d+);\s*memory_initialization_vector=([\w,\s]+);\s*", text)
    return [int(w, int(found[1])) for w in found[2].split(",")]


@pytest.mark.parametrize("file_format", ROM_FORMATS)
def test_files_read_back(file_format, tmp_path):
    table = make_rom("tanh", "e4m3fn", out_fmt="q1.8", flags=True, invalid=0)
    path = tmp_path / f"table{ROM_FORMATS[file_format][0]}"
    write_rom(table, path)
    text = path.read_text()
    first = text.splitlines()[0]
    assert first.split(" ", 1)[1] == "softnum look-up table: 256 words of 14 bits"
    assert "command: softnum rtl rom --op tanh --format e4m3fn --result-format q1.8" in text
    assert "address: {a[7:0]}" in text and "word: {flags[4:0], result[8:0]}" in text
    if file_format == "mif":
        words = read_mif(text)
    elif file_format == "coe":
        words = read_coe(text)
    elif shutil.which("iverilog") is None:
        pytest.skip("no iverilog")
    else:
        (tmp_path / "bench.v").write_text(READ_BACK % (13, 255, file_format, path, 256))
        subprocess.run(["iverilog", "-o", tmp_path / "bench", tmp_path / "bench.v"], check=True)
        done = subprocess.run(["vvp", tmp_path / "bench"], check=True, capture_output=True, encoding="utf-8")
        words = [int(line, 16) for line in done.stdout.split()]
    assert words == table.words.tolist()


def test_the_words_are_softnum_s():
    codes = np.arange(256, dtype=np.uint8)
    want, flags = sn.sigmoid(codes, "e5m2", rounding="up", return_flags=True)
    table = make_rom("sigmoid", "e5m2", rounding="up", flags=True)
    assert (table.words == want | flags.astype(np.uint64) << np.uint64(8)).all() and table.data_bits == 13
    assert (make_rom("convert", "e4m3fn", out_fmt="binary32").words == sn.convert(codes, "e4m3fn", "binary32")).all()
    a, b = np.meshgrid(np.arange(64, dtype=np.uint8), np.arange(16, dtype=np.uint8), indexing="ij")
    table = make_rom("multiply", ("e2m3fn", "e2m1fn"), out_fmt="q5.4")
    want = sn.multiply(a, b, ("e2m3fn", "e2m1fn"), out_fmt="q5.4").ravel()
    assert table.address_bits == 10 and (table.words == want).all()
    drawn = make_rom("add", "q2.1", out_fmt="q2.0", rounding="sr", stochastic_bits=3)
    assert drawn.address_bits == 9 and drawn.facts["address"] == "{a[2:0], b[2:0], random[2:0]}"
    for at in range(512):
        want = sn.add(
            [at >> 6], [at >> 3 & 7], "q2.1", out_fmt="q2.0", rounding="sr", stochastic_bits=3,
            random_bits=np.array([at & 7]),
        )  # fmt: skip
        assert drawn.words[at] == want[0]


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"at most 20 bits, and multiply takes 32 \(16 of a \+ 16 of b\)"):
        make_rom("multiply", "binary16")
    with pytest.raises(ValueError, match="invalid="):
        make_rom("convert", "e5m2", out_fmt="e2m1fn")
    assert make_rom("convert", "e5m2", out_fmt="e2m1fn", invalid=6).words[0x7E] == 7
    with pytest.raises(ValueError, match="a word has at most 64 bits; flags and a code of binary64 take 69"):
        make_rom("convert", "e5m2", out_fmt="binary64", flags=True)
    table = make_rom("negate", "e2m1fn")
    with pytest.raises(ValueError, match=r"no file format is known by the name .*table.txt; state one of readmemh"):
        write_rom(table, tmp_path / "table.txt")
    with pytest.raises(ValueError, match="unknown file format 'hexadecimal'; state one of"):
        write_rom(table, tmp_path / "table.mem", "hexadecimal")
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path):
    run, app = CliRunner().invoke, build_app()
    path = tmp_path / "product.mif"
    done = run(app, ["rtl", "rom", "--op", "multiply", "--format", "e2m1fn", "--rounding", "rtz", "-o", str(path)])
    assert done.exit_code == 0 and "256 words of 4 bits" in done.output
    assert read_mif(path.read_text()) == make_rom("multiply", "e2m1fn", rounding="toward_zero").words.tolist()
    again = re.search(r"command: softnum (.*)", path.read_text())[1].split()
    assert run(app, [*again, "-o", str(tmp_path / "again.mif")]).exit_code == 0
    assert (tmp_path / "again.mif").read_text() == path.read_text()
    shown = run(app, ["rtl", "rom", "--op", "negate", "--format", "e2m1fn", "--file-format", "readmemb"])
    assert shown.exit_code == 0 and shown.output.splitlines()[-1] == "0111"
    for arguments, says in (
        (["--op", "tanh"], "state --format"),
        (["--op", "tanh", "--format", "binary32", "-o", str(path)], "at most 20 bits"),
        (["--op", "tanh", "--format", "e5m2"], "no file format is known by the name -"),
        (["--op", "tanh", "--format", "e5m2", "-o", str(tmp_path)], "is a folder; name a file in it"),
    ):
        done = run(app, ["rtl", "rom", *arguments])
        assert done.exit_code == 2 and says in done.output
