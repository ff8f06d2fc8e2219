"""Elementary functions against MPFR's numbers."""

import numpy as np

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import Flags
from tests.support.core_oracles import show
from tests.support.elementary_oracle import exact, expected

WORD = 0b10110


def check(name, codes, fmt, env, *, number=exact, out_fmt=None, word=WORD):
    """The library's codes and flags are those of MPFR's number, rounded by the reference."""
    out_fmt = out_fmt or fmt
    stochastic = env["rounding"].startswith("stochastic")
    random_bits = {"random_bits": np.uint32(word)} if stochastic else {}
    invalid = 0 if out_fmt.has_zero else 1
    got, flags = getattr(sn.ops, name)(
        *codes, fmt, out_fmt=out_fmt, return_flags=True, invalid=invalid, **random_bits, **env
    )
    one = {"random_bits": word} if stochastic else {}
    for i, operands in enumerate(zip(*(c.tolist() for c in codes), strict=True)):
        want, want_flags = expected(name, operands, fmt, out_fmt, number=number, invalid=invalid, **one, **env)
        if (int(got[i]), int(flags[i])) != (want, int(want_flags)):
            shown = ", ".join(show(c, fmt) for c in operands)
            raise AssertionError(
                f"{name}({shown}) in {fmt} -> {out_fmt}, {env}: got {show(got[i], out_fmt)} {Flags(int(flags[i]))!r}, "
                f"want {show(want, out_fmt)} {want_flags!r}"
            )


def check_special(name, operands, want, flags):
    """The library and the reference give this value of values of binary16, with these flags."""
    codes = [sn.encode([x], "binary16") for x in operands]
    code, raised = getattr(sn.ops, name)(*codes, "binary16", return_flags=True)
    assert code.tolist() == sn.encode([want], "binary16").tolist() and raised.tolist() == [flags]
    assert getattr(ref, name)(*(int(c[0]) for c in codes), "binary16") == (int(code[0]), Flags(flags))
