"""The presets, and which outputs each has."""

import softnum as sn

CORES = [n for n in sn.units() if n.startswith("nvidia_") and isinstance(sn.unit(n), sn.FusedDotUnit)]


def outputs(name):
    if name not in CORES:
        return (None,)
    if name.endswith("_mma"):
        return (None, "binary32", "binary16")
    return (None, "binary32", "binary16") if name.split("_")[-1] not in ("bf16", "tf32") else (None, "binary32")


ALL = [(name, output) for name in sn.units() for output in outputs(name)]
