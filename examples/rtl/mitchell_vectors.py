"""Test vectors of a multiplier that is a function of one's own: all pairs of operands, and the answers judged.

python examples/rtl/mitchell_vectors.py generate vectors.txt
python examples/rtl/mitchell_vectors.py check vectors.txt answers.txt

The products are those of the function that trains (examples/custom/mitchell.py), in a format that holds each of them.
"""

import sys
from itertools import zip_longest
from pathlib import Path

import numpy as np

import softnum as sn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "custom"))
from mitchell import mitchell

OPERAND, PRODUCT = sn.format("e4m3"), sn.format("e6m3")


def vectors():
    """Lines of a, b and their product, as codes in hexadecimal: of every pair."""
    values = sn.decode(np.arange(1 << OPERAND.bits), OPERAND)
    with np.errstate(invalid="ignore"):  # infinity times zero
        products = np.array([[mitchell(np.float32(a), np.float32(b)) for b in values] for a in values], np.float64)
    codes = sn.encode(products, PRODUCT)
    kept = sn.decode(codes, PRODUCT)
    if not np.array_equal(kept, products, equal_nan=True):
        raise ValueError(f"{PRODUCT} does not hold every product")
    for (a, b), code in np.ndenumerate(codes):
        yield f"{a:02x} {b:02x} {code:03x}\n"


def main(verb, asked, given=None):
    if verb == "generate":
        Path(asked).write_text("".join(vectors()), encoding="ascii")
        return 0
    lines = (Path(file).read_text(encoding="ascii").splitlines() for file in (asked, given))
    wrong = [(want, got) for want, got in zip_longest(*lines, fillvalue="nothing") if want != got]
    for want, got in wrong[:3]:
        print(f"want {want}, got {got}")
    print(f"{given}: {len(wrong)} of {1 << 2 * OPERAND.bits} products differ")
    return int(bool(wrong))


if __name__ == "__main__":
    if sys.argv[1:2] not in (["generate"], ["check"]) or len(sys.argv) != (3 if sys.argv[1] == "generate" else 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
