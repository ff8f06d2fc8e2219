"""The matrix instructions of tensor cores, mma.sync and wgmma: their types, and where in registers elements lie.

Each has eight columns, the fewest that there are of its kind. Types go by PTX's names.
"""

from dataclasses import dataclass, replace

import numpy as np

from softnum.arrays.conversion import decode, encode
from softnum.mac.exact import ExactDotUnit
from softnum.mac.mad import MadUnit
from softnum.mac.presets import unit as preset
from softnum.mac.products.matrices import matmul

FORMATS = {
    "f16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2", "f32": "binary32",
    "f64": "binary64", "s8": "q8.0", "u8": "uq8.0", "s32": "q32.0",
}  # fmt: skip
CODES = {
    "f16": np.uint16, "bf16": np.uint16, "tf32": np.uint32, "e4m3": np.uint8, "e5m2": np.uint8, "f32": np.uint32,
    "f64": np.uint64, "s8": np.uint8, "u8": np.uint8, "s32": np.uint32,
}  # fmt: skip


def size_of(kind: str) -> int:
    """Bytes of an element."""
    return np.dtype(CODES[kind]).itemsize


def encoded(x, kind: str) -> np.ndarray:
    """Values that a type has, as its codes: those of tf32 are binary32's."""
    if kind in ("tf32", "f32"):
        return np.asarray(x, np.float32).view(np.uint32)
    return np.asarray(encode(np.asarray(x, np.float64), FORMATS[kind])).astype(CODES[kind])


def decoded(codes, kind: str) -> np.ndarray:
    """Values of codes; of tf32's the low 13 bits count for nothing."""
    codes = np.ascontiguousarray(codes, CODES[kind])
    if kind == "tf32":
        return (codes & np.uint32(0xFFFFE000)).view(np.float32)
    return decode(codes, FORMATS[kind])


def differing(got, want) -> np.ndarray:
    """Where values have other bits; NaN are the same, whatever their payloads."""
    bits = f"u{want.dtype.itemsize}"
    return (got.astype(want.dtype).view(bits) != want.view(bits)) & ~(np.isnan(got) & np.isnan(want))


def steps_of(arrays):
    """(a, b, c, d) of a recording's rows, then of each step of its chains, whose d is the next one's c: codes."""
    yield tuple(arrays[name] for name in "abcd")
    before = arrays["chain_c"]
    for step in range(arrays["chain_d"].shape[1]):
        after = arrays["chain_d"][:, step]
        yield arrays["chain_a"][:, step], arrays["chain_b"][:, step], before, after
        before = after


@dataclass(frozen=True)
class Instruction:
    """d = a·b + c, with a (m, k), b (k, 8), c and d (m, 8).

    Parameters
    ----------
    kind : {"mma", "wgmma"}
        Computed by a warp, or by four, each 16 rows, with b in shared memory.
    m, k : int
    a, b, d : str
        Types; c has that of d.
    since : (int, int)
        The first compute capability that has it.
    saturate : bool
        Integer sums end at the ends of their range (.satfinite).
    """

    kind: str
    m: int
    k: int
    a: str
    b: str
    d: str
    since: tuple[int, int]
    saturate: bool = False

    def on(self, capability: tuple[int, int]) -> bool:
        """Whether a GPU of this compute capability has it: wgmma is Hopper's alone."""
        return capability[0] == 9 if self.kind == "wgmma" else capability >= self.since

    # ---- names -------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Shape and types, as MMA-Sim writes them."""
        types = [self.d, self.a, self.b, *[self.d] * (self.kind == "mma")]
        return ".".join([f"m{self.m}n8k{self.k}", *["satfinite"] * self.saturate, *types])

    @property
    def file(self) -> str:
        """A name for files and tests."""
        return f"{self.kind}_{self.name.replace('.', '_')}"

    @property
    def ptx(self) -> str:
        """The instruction's own name."""
        shape, cut = f"m{self.m}n8k{self.k}", ".satfinite" * self.saturate
        if self.kind == "wgmma":
            return f"wgmma.mma_async.sync.aligned.{shape}.{self.d}.{self.a}.{self.b}{cut}"
        return f"mma.sync.aligned.{shape}.row.col{cut}.{self.d}.{self.a}.{self.b}.{self.d}"

    def unit(self, gpu: str):
        """What it computes on a GPU of the presets', such as "h200"."""
        if self.d == "f64":
            return MadUnit("binary64", operand="binary64")
        operands = FORMATS[self.a], FORMATS[self.b]
        if self.d == "s32":
            return ExactDotUnit("q32.0", operand=operands, overflow="saturate" if self.saturate else "wrap")
        by_mma = size_of(self.a) == 1 and self.kind == "mma" and gpu in ("h100", "h200", "b200")
        name = f"nvidia_{gpu}_{'fp16' if self.a == 'f16' else self.a}{'_mma' * by_mma}"
        unit = preset(name, output=FORMATS[self.d])
        return replace(unit, operand=operands, terms=min(unit.terms, self.k))

    def rows_that_differ(self, arrays, unit) -> list[np.ndarray]:
        """Of a recording's rows, and of each step of its chains: where the unit computes another result."""
        found = []
        for codes in steps_of(arrays):
            a, b, c, d = (decoded(x, kind) for x, kind in zip(codes, (self.a, self.b, self.d, self.d), strict=True))
            got = matmul(a[:, None, :], b[:, :, None], unit, c[:, None, None])[:, 0, 0]
            found.append(differing(got, d))
        return found

    # ---- registers ---------------------------------------------------------------------------------------------------
    # A lane's registers, for each of the warps: of 32 bits, or of 64 for f64. They hold elements in the order of their
    # bytes. `places_...` are (rows, columns), each (32 lanes, elements): what element lies there (PTX ISA, matrix
    # fragments of mma and wgmma).

    @property
    def warps(self) -> int:
        return 4 if self.kind == "wgmma" else 1

    @property
    def word(self) -> type:
        return np.uint64 if self.d == "f64" else np.uint32

    @property
    def _per(self) -> int:
        """Elements of a or b in a register."""
        return max(1, 4 // size_of(self.a))

    @property
    def _along_k(self) -> int:
        """Registers of a or b side by side: four lanes have a row's elements."""
        return self.k // (4 * self._per)

    @property
    def bands(self) -> int:
        """Of eight rows, that a warp computes."""
        return min(self.m, 16) // 8

    @property
    def places_a(self) -> tuple[np.ndarray, np.ndarray]:
        lane, i = np.arange(32)[:, None], np.arange(self.bands * self._along_k * self._per)
        register = i // self._per
        column = lane % 4 * self._per + i % self._per + 4 * self._per * (register // self.bands)
        return lane // 4 + 8 * (register % self.bands), column

    @property
    def places_b(self) -> tuple[np.ndarray, np.ndarray]:
        lane, i = np.arange(32)[:, None], np.arange(self._along_k * self._per)
        return lane % 4 * self._per + i % self._per + 4 * self._per * (i // self._per), lane // 4 + 0 * i

    @property
    def places_d(self) -> tuple[np.ndarray, np.ndarray]:
        lane, i = np.arange(32)[:, None], np.arange(2 * self.bands)
        return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2

    @property
    def registers(self) -> tuple[int, int, int]:
        """How many a lane has of a, b and d; b of wgmma has none."""
        of_d = 2 * self.bands // (2 if self.d == "f16" else 1)
        return self.bands * self._along_k, self._along_k if self.kind == "mma" else 0, of_d


_EIGHT_BITS = [(a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
_BYTES = [("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8")]

INSTRUCTIONS = [
    *(Instruction("mma", 16, k, "f16", "f16", d, (8, 0)) for d in ("f32", "f16") for k in (16, 8)),
    *(Instruction("mma", 16, k, "bf16", "bf16", "f32", (8, 0)) for k in (16, 8)),
    *(Instruction("mma", 16, k, "tf32", "tf32", "f32", (8, 0)) for k in (8, 4)),
    *(Instruction("mma", 16, k, a, b, d, (8, 9)) for k in (32, 16) for d in ("f32", "f16") for a, b in _EIGHT_BITS),
    Instruction("mma", 8, 4, "f64", "f64", "f64", (8, 0)),
    *(Instruction("mma", 16, k, "f64", "f64", "f64", (9, 0)) for k in (4, 8, 16)),
    *(Instruction("mma", 16, 32, a, b, "s32", (8, 0), saturate) for a, b in _BYTES for saturate in (False, True)),
    *(Instruction("mma", 16, 16, a, b, "s32", (8, 0)) for a, b in _BYTES[:2]),
    *(Instruction("wgmma", 64, 16, "f16", "f16", d, (9, 0)) for d in ("f32", "f16")),
    Instruction("wgmma", 64, 16, "bf16", "bf16", "f32", (9, 0)),
    Instruction("wgmma", 64, 8, "tf32", "tf32", "f32", (9, 0)),
    *(Instruction("wgmma", 64, 32, a, b, d, (9, 0)) for d in ("f32", "f16") for a, b in _EIGHT_BITS),
    *(Instruction("wgmma", 64, 32, a, b, "s32", (9, 0), saturate) for a, b in _BYTES for saturate in (False, True)),
]
