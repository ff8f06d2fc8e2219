"""What formats and units are equal by: all that their functions are made of, headers and global names among it."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import softnum as sn

SOURCE = """#include "scale.h"
typedef struct { uint s : 1; uint m : 7; } new_fp;
float as_float(new_fp a) { return (a.s ? -SCALE : SCALE) * a.m; }
new_fp convert(float x) {
    float m = (x < 0 ? -x : x) / SCALE;
    return (new_fp){x < 0, m > 127 ? 127 : (uint)m};
}
"""
SCALE = 1


def scaled_value(code):
    return code * float(SCALE)


def scaled_product(a, b):
    return a * b * np.float32(SCALE)


def test_formats_in_c_differ_where_a_header_does(tmp_path):
    (tmp_path / "f.c").write_text(SOURCE)
    formats = []
    for scale in (1, 2):
        (tmp_path / "scale.h").write_text(f"#define SCALE {scale}.0f\n")
        formats.append(sn.CustomFormat.from_c(tmp_path / "f.c"))
    one, two = formats
    assert one != two and [f.values[3] for f in formats] == [3, 6]
    x = np.float32([[4, 6]])
    assert [sn.matmul(x, x.T, sn.MadUnit(f, operand=f)).tolist() for f in formats] == [[[52]], [[52]]]
    with pytest.raises(ValueError, match="formats differ"):
        np.concatenate([sn.array([3.0], one), sn.array([4.0], two)])
    assert pickle.loads(pickle.dumps(two)) == two
    with pytest.raises(ValueError, match="a file that its source includes has changed since the format was"):
        pickle.loads(pickle.dumps(one))


def test_formats_in_python_differ_where_a_global_name_does(monkeypatch):
    make = lambda: sn.CustomFormat(2, as_float=scaled_value)  # noqa: E731
    one, same = make(), make()
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5)
    five = make()
    assert one == same and hash(one) == hash(same) and one != five
    assert [f.values for f in (one, five)] == [(0, 1, 2, 3), (0, 5, 10, 15)]
    x = np.float32([[5]])
    assert sn.matmul(x, x, sn.MadUnit(five, operand=five)) == 15  # 25 saturates


def test_a_unit_made_anew_sees_what_its_function_reads(monkeypatch):
    x, found, units = np.float32([1]), [], []
    for scale in (1, 2, 4):
        monkeypatch.setattr(sys.modules[__name__], "SCALE", scale)
        units.append(sn.CustomMadUnit(scaled_product, operand="e5m2", accumulator="e6m9"))
        found.append(float(sn.dot(x, x, units[-1])))
    assert found == [1, 2, 4]
    assert units[-1] == sn.CustomMadUnit(scaled_product, operand="e5m2", accumulator="e6m9") != units[0]
    assert pickle.loads(pickle.dumps(units[-1])) == units[-1]


def test_compiled_code_is_found_again_from_another_module(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text("def mad(a, b):\n    return a * b\n")
        program = (
            f"import sys; sys.path.insert(0, {str(tmp_path / name)!r}); import numpy as np, softnum as sn, {name}\n"
            f"unit = sn.CustomMadUnit({name}.mad, operand='e5m2', accumulator='e6m9')\n"
            "print(sn.dot(np.ones(4, np.float32), np.ones(4, np.float32), unit))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.stdout, done.returncode) == ("4.0\n", 0), done.stderr


def test_what_a_header_of_the_system_says_in_a_struct_counts():
    fmt = sn.CustomFormat.from_c(
        "#include <stdbool.h>\n"
        "typedef struct { bool s : 1; uint m : 3; } fp;\n"
        "float as_float(fp a) { return a.s ? -(float)a.m : a.m; }\n"
        "fp convert(float x) { return (fp){x < 0, (uint)(x < 0 ? -x : x)}; }\n",
        "fp",
    )
    assert fmt.bits == 4 and sn.quantize([-3.0, 3.0], fmt).tolist() == [-3, 3]


def test_a_probe_of_a_custom_format_is_refused():
    fmt = sn.CustomFormat.from_table([0.0, 1.0, -1.0, 0.5])
    with pytest.raises(ValueError, match="of which no bits are told"):
        sn.probe("add", [1], [3], fmt=fmt)
    with pytest.raises(ValueError, match="of which no bits are told"):
        sn.probe("encode", [0.3], fmt)
    assert sn.probe("add", [1], [3], fmt=fmt, out_fmt="e5m2").result.tolist() == [0x3E]  # 1 + 0.5
    with np.errstate(all="raise"):
        assert sn.multiply([1], [1], sn.CustomFormat.from_table([0.0, 1e300, -1e300, 1e-300])).tolist() == [1]
