"""Files that are known and hold no time of an iteration, or not in a form to be read: what they are, and what to use.

Nsight Systems' tables as a console shows them: "Executing ... stats report" of ``nsys profile --stats=true``,
"Processing ... with ..." of ``nsys stats``. SCALE-Sim's reports other than COMPUTE_REPORT.csv: scalesim/simulator.py of
github.com/scalesim-project/SCALE-Sim.
"""

from __future__ import annotations

import re
from pathlib import Path

from softnum.tta.timings import nsys

__all__ = ["say_what_it_is"]

_CONSOLE = re.compile(
    r"^(?:\[\d+/\d+\] Executing '(\w+)' stats report"
    r"|Processing \[[^\]\n]*\] with \[(?:[^\]\n]*/)?(\w+)\.py\]"
    r"|[ ]*\*\* [^\n]* \((\w*(?:sum|trace)\w*)\):"
    r"|[ ]*Time ?\(%\)[ ]+Total Time ?\(\w+\)[ ]+[^,\n]*\n[ ]*--[- ]*)",
    re.MULTILINE,
)
_RECORDING = re.compile(r"[^\s\[\]'\"/]+\.(?:nsys-rep|qdrep|sqlite)\b")
#: by the second heading: the file, and what it has
_SCALESIM = {
    "Avg IFMAP SRAM BW": ("BANDWIDTH_REPORT.csv", "words a cycle"),
    "SRAM IFMAP Start Cycle": ("DETAILED_ACCESS_REPORT.csv", "accesses, and when they begin and end"),
    "Sparsity Representation": ("SPARSE_REPORT.csv", "the storage of filters"),
    "Time (us)": ("TIME_REPORT.csv", "times that a model fitted to other hardware gives for the cycles"),
}


def say_what_it_is(path: Path, text: str) -> None:
    """Raise ValueError for a file that is known by its contents, with what it is and what to use in its place.

    Raises
    ------
    ValueError
        For Nsight Systems' console text and SCALE-Sim's reports without cycles.

    Examples
    --------
    >>> say_what_it_is(Path("b.csv"), "LayerID, Avg IFMAP SRAM BW, Avg FILTER SRAM BW,\\n0, 1.5, 2.0,\\n")
    Traceback (most recent call last):
        ...
    ValueError: b.csv, line 1: SCALE-Sim's BANDWIDTH_REPORT.csv (words a cycle), which has no cycles of a layer; read
    COMPUTE_REPORT.csv of the same folder
    """
    heading = re.match(r"LayerID, *([^,\n]+?) *[,\n]", text)
    if heading and heading[1] in _SCALESIM:
        name, what = _SCALESIM[heading[1]]
        raise ValueError(
            f"{path}, line 1: SCALE-Sim's {name} ({what}), which has no cycles of a layer; read COMPUTE_REPORT.csv of "
            "the same folder"
        )
    first = _CONSOLE.search(text)
    if first is None or nsys.header_line(text) is not None:
        return
    found = [match[1] or match[2] or match[3] for match in _CONSOLE.finditer(text)]
    reports = list(dict.fromkeys(name for name in found if name))
    listed = f" ({', '.join(reports[:8])})" if reports else ""
    recording = _RECORDING.search(text)
    name = recording[0] if recording else "REPORT.nsys-rep"
    raise ValueError(
        f"{path}, line {text.count(chr(10), 0, first.start()) + 1}: tables of Nsight Systems as a console shows them"
        f"{listed}, which are not read; export one as CSV: nsys stats --report nvtx_pushpop_trace --format csv {name} "
        "> ranges.csv, where the program marks iterations with NVTX, else --report cuda_gpu_trace"
    )
