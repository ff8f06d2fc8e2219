"""Formats as C text: what a C program computes with them is what softnum computes."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.formats.c_text import format_constant
from softnum.runtime import _core
from tests.support.format_lists import NARROW

FORMATS = [
    *NARROW, "q4.4", "uq8.8", "q1.63", "q10.-2", "q-2.10", "binary8p3ue", "binary12p5sf", "e15m48",
    sn.FloatFormat(5, 2, lowest_binade="zero", name="e5m2 flushing"), sn.FloatFormat(4, 3, bias=-20, name="4+3"),
]  # fmt: skip

PROGRAM = """
#include <stdio.h>

#include "softnum/softnum.h"

{constants}
int main(void) {{
    static const sn_format *const formats[] = {{{names}}};
    const sn_env env = {{SN_NEAREST_EVEN, SN_OVERFLOW_SATURATE, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0}};
    unsigned index;
    unsigned long long a, b;
    while (scanf("%u %llx %llx", &index, &a, &b) == 3) {{
        sn_u32 flags = 0;
        const sn_u64 sum = sn_add(formats[index], a, formats[index], b, formats[index], &env, 0, &flags);
        printf("%llx %x\\n", (unsigned long long)sum, flags & 31);
    }}
    return 0;
}}
"""


def test_fields_are_those_of_the_header_in_its_order():
    header = (Path(sn.get_include()) / "softnum/rounding/format.h").read_text()
    struct = re.search(r"typedef struct \{(.*?)\} sn_format;", header, re.DOTALL)[1]
    declared = re.findall(r"(sn_i32|sn_u64) ([\w, ]+);", struct)
    fields = {name: kind for kind, names in declared for name in names.split(", ")}
    assert list(fields) == list(_core.format_facts(sn.format("e5m2")))
    words = re.findall(r"0x[0-9a-f]+ull, +/\* (\w+) \*/", format_constant("e5m2"))
    assert words == [name for name, kind in fields.items() if kind == "sn_u64"]


@pytest.mark.parametrize(("compiler", "standard"), [("cc", "c11"), ("c++", "c++17")])
def test_c_programs_compute_with_them(compiler, standard, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source = tmp_path / f"sums.{'c' if compiler == 'cc' else 'cpp'}"
    constants = [format_constant(fmt) for fmt in FORMATS]
    names = [re.search(r"sn_format (\w+) =", text)[1] for text in constants]
    assert len(set(names)) == len(names)
    source.write_text(PROGRAM.format(constants="".join(constants), names=", ".join(f"&{name}" for name in names)))
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wno-unused-function", "-Werror"]
    command = [compiler, f"-std={standard}", "-O1", *strict, f"-I{sn.get_include()}", str(source)]
    subprocess.run([*command, "-o", str(tmp_path / "sums")], check=True)
    rng, lines, want = np.random.default_rng(3), [], []
    for index, fmt in enumerate(map(sn.format, FORMATS)):
        codes = rng.integers(0, (1 << fmt.bits) - 1, (2, 40), np.uint64, endpoint=True)
        sums, flags = sn.add(*codes.astype(fmt.storage_dtype), fmt, overflow="saturate", invalid=0, return_flags=True)
        lines += [f"{index} {a:x} {b:x}\n" for a, b in codes.T.tolist()]
        want += [f"{code:x} {flag:x}" for code, flag in zip(sums.tolist(), flags.tolist(), strict=True)]
    run = subprocess.run([tmp_path / "sums"], input="".join(lines), capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:-1] == want


def test_names_and_refusals():
    assert format_constant("uq8.8").startswith("static const sn_format format_uq8_8 = {\n    SN_FIXED, ")
    assert format_constant("e5m2", "narrow").startswith("static const sn_format narrow = {\n    SN_FLOAT, ")
    table = sn.CustomFormat.from_table([0.0, 1.0])
    for call, message in (
        (lambda: format_constant("mxfp4"), "no sn_format describes mxfp4_e2m1, a block format"),
        (lambda: format_constant(table), "no sn_format describes table, a table format"),
        (lambda: format_constant("e5m2", "5m2"), "name='5m2' is not a C identifier"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
