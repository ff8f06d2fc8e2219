"""The matrix instructions of tensor cores."""

from dataclasses import dataclass

import numpy as np

import softnum as sn


@dataclass(frozen=True)
class Instruction:
    """One shape of mma.sync: how deep it is, its operands' format, bytes of an element, the type of C and D."""

    depth: int
    operand: str
    size: int
    result: str = "f32"

    @property
    def name(self) -> str:
        """Its name in PTX."""
        kinds = f"{self.result}.{self.operand}.{self.operand}.{self.result}"
        return f"mma.sync.aligned.m16n8k{self.depth}.row.col.{kinds}"

    @property
    def format(self) -> str:
        names = {"f16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2"}
        return names[self.operand]

    def unit(self, gpu: str):
        """What this GPU's instruction computes: a preset."""
        name = f"nvidia_{gpu}_{'fp16' if self.operand == 'f16' else self.operand}"
        name += "_mma" if self.size == 1 and gpu in ("h100", "b200") else ""
        return sn.unit(name, output="binary16" if self.result == "f16" else "binary32")

    # Where elements lie: for each lane and each element of its registers, the row and column (PTX ISA, "Matrix
    # fragments for mma"). Registers hold elements of `size` bytes, the first in the lowest bits.

    @property
    def places_a(self):
        """(rows, columns), each of shape (32 lanes, elements), of A, 16 x depth."""
        lane, per = np.arange(32)[:, None], 4 // self.size
        i = np.arange(4 * per)[None, :]
        register = i // per  # registers 0 and 2 are of the upper half of the rows, 2 and 3 of the right of the columns
        row = lane // 4 + 8 * (register % 2) + 0 * i
        return row, lane % 4 * per + i % per + 4 * per * (register // 2)

    @property
    def places_b(self):
        """The same of B, depth x 8."""
        lane, per = np.arange(32)[:, None], 4 // self.size
        i = np.arange(2 * per)[None, :]
        return lane % 4 * per + i % per + 4 * per * (i // per), lane // 4 + 0 * i

    @property
    def places_c(self):
        """The same of C and D, 16 x 8."""
        lane, i = np.arange(32)[:, None], np.arange(4)[None, :]
        return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2

    def registers(self, codes, places):
        """Codes (..., rows, columns) in the lanes' registers: uint32 (..., 32, registers)."""
        picked = np.ascontiguousarray(codes[(..., *places)])
        return picked.view(np.uint32)

    def codes(self, x):
        """Values as the patterns of the operands: those of tf32 are binary32's."""
        if self.operand == "tf32":
            return np.ascontiguousarray(x, np.float32).view(np.uint32)
        return sn.encode(x, self.format)

    def text(self) -> str:
        """C of one instruction: registers a, b, and d, which C comes in and the sum goes out by."""
        names, c_type = [f"d{i}" for i in range(4)], "float"
        enter, leave, constraint = "__uint_as_float(d[{0}])", "__float_as_uint(d{0})", "+f"
        if self.result == "f16":
            names, c_type, enter, leave, constraint = names[:2], "sn_u32", "d[{0}]", "d{0}", "+r"
        wide = len(names)

        def group(first, count):
            return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"

        begin = ", ".join(f"{name} = {enter.format(i)}" for i, name in enumerate(names))
        outputs = ", ".join(f'"{constraint}"({name})' for name in names)
        inputs = ", ".join([f'"r"(a[{i}])' for i in range(4)] + [f'"r"(b[{i}])' for i in range(2)])
        end = "\n".join(f"d[{i}] = {leave.format(i)};" for i in range(wide))
        sums = group(0, wide)
        return (
            f"#if defined(__CUDACC_RTC__)\n{c_type} {begin};\n"
            f'asm volatile("{self.name} {sums}, {group(wide, 4)}, {group(wide + 4, 2)}, {sums};"\n'
            f"             : {outputs} : {inputs});\n{end}\n#else\n(void)a, (void)b, (void)d;\n#endif\n"
        )


INSTRUCTIONS = [
    Instruction(16, "f16", 2), Instruction(16, "f16", 2, "f16"), Instruction(16, "bf16", 2), Instruction(8, "tf32", 4),
    Instruction(32, "e4m3", 1), Instruction(32, "e5m2", 1), Instruction(32, "e4m3", 1, "f16"),
    Instruction(32, "e5m2", 1, "f16"),
]  # fmt: skip


def function_of(instruction):
    """The device function (a, b, d), pointers to a lane's registers."""
    from softnum.kernels.device.runtime import _cuda
    from softnum.kernels.device.runtime.source import Entry, Library

    pointers = tuple(("uint32*", name) for name in "abd")
    return _cuda.bind(Library("", (Entry("mma", "void", pointers, instruction.text()),), "softnum/word/base.h")).mma
