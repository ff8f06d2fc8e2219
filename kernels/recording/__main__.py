"""The command: ``python -m softnum.kernels.recording FOLDER``."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from softnum.kernels.recording import functions
from softnum.kernels.recording.device import Device, compiled, nvidia_driver, text
from softnum.kernels.recording.mma import INSTRUCTIONS, Instruction, decoded, differing
from softnum.kernels.recording.rows import KINDS, STEPS, operands
from softnum.kernels.recording.tiles import computed

HELP = f"""\
Record what this GPU's matrix instructions compute: of mma.sync and wgmma in floating point and in bytes, those that the
chip has, rows of d = a*b + c, and chains of {STEPS} instructions, each d being the next one's c. All are eight columns
wide; left out are sparse ones, and integers of four bits and one.

FOLDER gets a file for each instruction, NumPy's .npz, of codes: a and b (rows, K), c and d (rows,), kind (rows,), the
row's kind by its number; chain_a and chain_b (chains, {STEPS}, K), chain_c (chains,), chain_d (chains, {STEPS}).
functions.npz has results of PTX's functions of one element. manifest.json says what each file is of, which GPU and
driver computed it, and when.
"""

EPILOG = """\
Operands depend on the seed alone, not on the GPU. Compare NaN as NaN: their payloads are the hardware's own.
tests/data/nvidia_h200 is a selection of such a folder; tests/core/test_hardware_vectors.py tests softnum's units by it.
"""


def recorded(device, one: Instruction, seed: int, each: int) -> dict[str, np.ndarray]:
    """The arrays of an instruction's file."""
    given = operands(one, seed, each)
    d = computed(device, one, given["a"], given["b"], given["c"])
    chain_d = computed(device, one, given["chain_a"], given["chain_b"], given["chain_c"])
    return {**given, "a": given["a"][:, 0], "b": given["b"][:, 0], "d": d[:, 0], "chain_d": chain_d}


def entry(one: Instruction, path: Path, arrays: dict, device) -> dict:
    """What the manifest says of a file."""
    instruction = {"kind": one.kind, "architecture": device.name, "instruction": one.name, "ptx": one.ptx}
    return {
        "name": one.file, "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "a": one.a, "b": one.b, "c": one.d, "d": one.d, "K": one.k, "instructions": [instruction],
        "rows": len(arrays["d"]), "chains": len(arrays["chain_d"]),
    }  # fmt: skip


def compared(device, folder: Path, out: Path) -> None:
    """The rows of another folder on this GPU: its results into `out`, and how many differ from those given there."""
    manifest = json.loads((folder / "manifest.json").read_text())
    ours = {(one.kind, one.name): one for one in INSTRUCTIONS if one.on(device.capability)}
    for other in manifest["arithmetics"]:
        with np.load(folder / other["file"], allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
        for named in other["instructions"]:
            one = ours.get((named["kind"], named["instruction"]))
            if one is None:
                continue
            d = computed(device, one, arrays["a"][:, None], arrays["b"][:, None], arrays["c"])[:, 0]
            chain_d = computed(device, one, arrays["chain_a"], arrays["chain_b"], arrays["chain_c"])
            np.savez_compressed(out / f"given_{other['name']}_{one.kind}.npz", d=d, chain_d=chain_d)
            wrong = differing(decoded(d, one.d), decoded(arrays["d"], one.d))
            by_kind = np.bincount(arrays["kind"][wrong], minlength=len(manifest["kinds"]))
            which = ", ".join(f"{kind} {n}" for kind, n in zip(manifest["kinds"], by_kind, strict=True) if n)
            chains = differing(decoded(chain_d, one.d), decoded(arrays["chain_d"], one.d)).any(1)
            said = f"{wrong.sum()} of {len(d)} rows differ{which and f' ({which})'}"
            print(f"{other['name']}, {one.kind}: {said}, {chains.sum()} of {len(chains)} chains", flush=True)


def record_instructions(device, folder: Path, seed: int, each: int) -> tuple[list[dict], list[str]]:
    """Write their files: (entries of the manifest, names of those that the compiler or the GPU refused)."""
    entries, failed = [], []
    for one in INSTRUCTIONS:
        if not one.on(device.capability):
            continue
        try:
            arrays = recorded(device, one, seed, each)
        except RuntimeError as error:
            print(f"{one.file}: {error}", file=sys.stderr, flush=True)
            failed.append(one.file)
            continue
        path = folder / f"{one.file}.npz"
        np.savez_compressed(path, **arrays)
        entries.append(entry(one, path, arrays, device))
        print(f"{one.file}: {len(arrays['d'])} rows, {len(arrays['chain_d'])} chains", flush=True)
    return entries, failed


def record_functions(device, folder: Path) -> dict:
    """Write functions.npz, without those that the chip lacks; its entry of the manifest."""
    path = folder / "functions.npz"
    results, lacking = functions.recorded(device, 2**16)
    np.savez_compressed(path, **results)
    print(f"functions: {len(results) - 1}{', not ' * bool(lacking)}{', '.join(lacking)}", flush=True)
    return {
        "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "what": "results of PTX functions by name: of x_f32, or of all 16-bit codes (f16, bf16; two e4m3 or e5m2)",
    }  # fmt: skip


def compile_all(chip: str) -> None:
    """Compile everything for a chip, without a GPU, and say how many bytes of code each is."""
    for name, source in [
        *((one.file, text(one)) for one in INSTRUCTIONS),
        *((name, function.text) for name, function in functions.FUNCTIONS.items()),
    ]:
        print(name, len(compiled(source, chip)))


def arguments_of(arguments: list[str] | None) -> argparse.Namespace:
    """What the command was told."""
    parser = argparse.ArgumentParser(
        prog="python -m softnum.kernels.recording", description=HELP, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path, nargs="?", help="where the files go; it is made if it is not there")
    each = f"rows of each kind, of which there are {len(KINDS)} (default: %(default)s)"
    parser.add_argument("--each", type=int, default=160, metavar="N", help=each)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the operands (default: %(default)s)")
    parser.add_argument(
        "--inputs", type=Path, metavar="OTHER",
        help="another folder of the same layout, say of another GPU: compute its operands too, keep the results as "
        "given_NAME_KIND.npz, and say how many differ from those in it",
    )  # fmt: skip
    parser.add_argument("--compile-only", metavar="CHIP", help="only compile, say for sm_90a; that needs no GPU")
    given = parser.parse_args(arguments)
    if given.folder is None and not given.compile_only:
        parser.error("name the folder that the files go to")
    return given


def main(arguments: list[str] | None = None) -> int:
    """0; 1 if an instruction that the chip should have cannot be recorded, 2 if there is no GPU."""
    given = arguments_of(arguments)
    if given.compile_only:
        compile_all(given.compile_only)
        return 0
    try:
        device = Device()
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    given.folder.mkdir(parents=True, exist_ok=True)
    entries, failed = record_instructions(device, given.folder, given.seed, given.each)
    manifest = {
        "source": device.name, "capability": ".".join(map(str, device.capability)),
        "driver": nvidia_driver() or f"CUDA {device.cuda}", "date": datetime.now(UTC).date().isoformat(),
        "seed": given.seed, "kinds": KINDS, "nan": "compare NaN as a class", "rows": sum(x["rows"] for x in entries),
        "chains": sum(x["chains"] for x in entries), "arithmetics": entries,
        "functions": record_functions(device, given.folder),
    }  # fmt: skip
    (given.folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    if given.inputs:
        compared(device, given.inputs, given.folder)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
