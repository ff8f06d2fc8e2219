"""The default random stream, Philox4x32-10: digests of results of stochastic rounding, which no version may change."""

import hashlib

import numpy as np

import softnum as sn

STOCHASTIC = {"rounding": "stochastic"}
UNITS = {
    "one rounding, r = 12": sn.MadUnit("e6m9", operand="e5m2", stochastic_bits=12, **STOCHASTIC),
    "one rounding, r = 32": sn.MadUnit("e6m9", operand="e5m2", **STOCHASTIC),
    "two roundings, r = 12": sn.MadUnit("e6m9", operand="e5m2", product="e5m2", stochastic_bits=12, **STOCHASTIC),
    "two roundings, r = 32": sn.MadUnit("e6m9", operand="e5m2", product="e5m2", **STOCHASTIC),
    "the product alone": sn.MadUnit("e6m9", operand="e5m2", product="e5m2", product_rounding="stochastic"),
    "chunks": sn.MadUnit(
        "e6m9", operand="e5m2", chunk=7, outer_accumulator="bfloat16", stochastic_bits=8, **STOCHASTIC
    ),
    "lanes": sn.MadUnit("e6m9", operand="e5m2", lanes=3, chunk=9, reduction="tree", stochastic_bits=8, **STOCHASTIC),
    "exact": sn.ExactDotUnit("e6m9", operand="e5m2", stochastic_bits=12, **STOCHASTIC),
}
DIGESTS = {
    "one rounding, r = 12": "18d1897cee057f7c",
    "one rounding, r = 32": "295e5315301dda40",
    "two roundings, r = 12": "f46ed9fa795aceb4",
    "two roundings, r = 32": "90b12de16ae99fab",
    "the product alone": "3c9c1922de6d726d",
    "chunks": "79813a3da00215b5",
    "lanes": "59e3337a0a2e46d6",
    "exact": "65508389f0c9bd8c",
    "sum": "bebda34e00d81386",
    "conv2d": "27bcd81fe1c8a019",
    "quantize": "ea40b3dc29f2a035",
    "blocks": "84c049244d2a52ac",
    "words": "3cce72b998e8b33d",
}


def digest(*arrays) -> str:
    """Of arrays' bytes, little-endian."""
    found = hashlib.sha256()
    for x in arrays:
        found.update(np.ascontiguousarray(x, x.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()[:16]


def operands(fmt="e5m2"):
    """A stack of two products, no dimension a multiple of a vector."""
    words = np.random.Philox(key=5).random_raw(2 * 5 * 23 + 2 * 23 * 37)
    x = ((words >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(np.float32)
    return sn.quantize(x[: 2 * 5 * 23].reshape(2, 5, 23), fmt), sn.quantize(x[2 * 5 * 23 :].reshape(2, 23, 37), fmt)


def results() -> dict[str, str]:
    """By what they are of."""
    a, b = operands()
    c = sn.quantize(np.linspace(-3, 3, 37, dtype=np.float32), "e5m2")
    made = {
        name: digest(*(sn.matmul(a, b, unit, start, key=(7, 3)) for start in (None, c))) for name, unit in UNITS.items()
    }
    made["sum"] = digest(sn.sum(a, UNITS["one rounding, r = 12"], axis=-1, key=(7, 3)))
    made["conv2d"] = digest(sn.conv2d(a[:, None], b[:1, :3, :3][None], UNITS["one rounding, r = 12"], key=(7, 3)))
    made["quantize"] = digest(sn.quantize(b, "e4m3fn", key=(7, 3), **STOCHASTIC))
    blocks = [sn.array(x, "mxfp8_e4m3", axis=axis) for x, axis in ((a[0], -1), (b[0], -2))]
    unit = sn.BlockDotUnit("e6m9", operand="mxfp8_e4m3", stochastic_bits=12, **STOCHASTIC)
    made["blocks"] = digest(sn.matmul(*blocks, unit, key=(7, 3)))
    made["words"] = digest(sn.Stream(7, 3).words((5, 37), UNITS["two roundings, r = 32"], k=23))
    return made


def test_the_default_stream_does_not_change():
    """Made before there were other sources; by the definition and the fast paths, on each instruction set alike."""
    assert results() == DIGESTS
