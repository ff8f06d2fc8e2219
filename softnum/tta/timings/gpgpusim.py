"""Logs of GPGPU-Sim (3.x and 4.x) and of Accel-Sim, which prints GPGPU-Sim's statistics.

After each kernel, or each group of kernels that ran at once, the simulator prints a block::

    kernel_name = _Z6vecAddPKfS0_Pfi
    kernel_launch_uid = 1
    gpu_sim_cycle = 5620                   this kernel's
    gpu_sim_insn = 1228800
    gpu_tot_sim_cycle = 5620               all so far
    gpu_tot_sim_insn = 1228800

Before them it prints its clocks in hertz, ``GPGPU-Sim uArch: clock freqs: core:interconnect:L2:DRAM``; at its end
``GPGPU-Sim: *** exit detected ***``. A program that waits, or dies, after its last kernel leaves a log without that
line: then the kernels in it count, if as many have statistics as were launched, and what is said of them says so.
Cycles are of the core clock. Sources: ``gpgpu_sim::gpu_print_stat`` and ``gpgpu_sim_config::init_clock_domains`` in
src/gpgpu-sim/gpu-sim.cc, and src/gpgpusim_entrypoint.cc, of github.com/gpgpu-sim/gpgpu-sim_distribution.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from softnum.tta.text import count, lines_of, number
from softnum.tta.timings.kernels import Launch, group_launches, kernel_table
from softnum.tta.timings.series import Options, Series
from softnum.tta.timings.whose import whose_log

__all__ = ["read_gpgpusim"]

_CLOCKS = "GPGPU-Sim uArch: clock freqs:"
#: other lines with the core clock first, and what makes hertz of it: megahertz, and seconds
_AGAIN = {
    "-gpgpu_clock_domains": lambda value: value * 10**6,
    "GPGPU-Sim uArch: clock periods:": lambda value: 1 / value if value else value,
}
_EXIT = "GPGPU-Sim: *** exit detected ***"
_BROKEN = {
    "GPGPU-Sim: ** break due to reaching the maximum": "the simulation was ended at a limit of cycles or instructions",
    "GPGPU-Sim uArch: ERROR ** deadlock detected": "the simulation ended in a deadlock",
}
_LAUNCHES = ("GPGPU-Sim PTX: pushing kernel", "launching kernel name")
_VALUE = re.compile(
    r"(kernel_name|kernel_launch_uid|gpu_sim_cycle|gpu_sim_insn|gpu_tot_sim_cycle|gpu_tot_sim_insn) = *(.*)"
)
_ORDER = ("kernel_name", "kernel_launch_uid", "gpu_sim_cycle", "gpu_sim_insn", "gpu_tot_sim_cycle", "gpu_tot_sim_insn")


@dataclass
class _Block:
    line: int
    name: str
    values: dict[str, tuple[int, str]]  # by key: line and text


def read_gpgpusim(path: Path, text: str, options: Options) -> list[Series]:
    """Read the log of one design: the cycles of its kernels over the core clock."""
    blocks, hertz, ended, last, told = [], None, None, 0, {}
    launched = {mark: [] for mark in (*_LAUNCHES, "Processing kernel ")}
    for at, line in lines_of(text):
        last = at
        where = f"{path}, line {at}"
        if line.startswith(_CLOCKS):
            hertz = _core_clock(where, line, hertz)
            told.setdefault(_CLOCKS, (at, hertz))
        elif other := next((mark for mark in _AGAIN if line.startswith(mark)), None):
            if found := re.match(r" *(\d+(?:\.\d+)?):", line.removeprefix(other)):
                told.setdefault(other, (at, _AGAIN[other](Fraction(found[1]))))
        elif line.startswith(_EXIT):
            ended = at
        elif begun := next((mark for mark in launched if line.startswith(mark)), None):
            launched[begun].append(at)
        elif reason := next((_BROKEN[mark] for mark in _BROKEN if line.startswith(mark)), None):
            if options.allow_unfinished:
                break
            raise ValueError(f"{where}: {reason}; {_stop(blocks)}; raise the limit or mend the run, and simulate again")
        elif match := _VALUE.match(line):
            _take(where, at, match[1], match[2].strip(), blocks)
    if not blocks:
        raise ValueError(
            f"{path}, line {max(last, 1)}: no kernel_name = ... in {last} lines; expected the log of GPGPU-Sim or "
            "Accel-Sim with statistics after each kernel"
        )
    stopped = ""
    if ended is None or ended < blocks[-1].line or len(blocks[-1].values) < len(_ORDER):
        inside = _unfinished(blocks, launched)
        blocks = [block for block in blocks if len(block.values) == len(_ORDER)]
        if inside and not (options.allow_unfinished and blocks):
            way = "let the simulation run to its end" + (", or take these with --allow-unfinished" if blocks else "")
            raise ValueError(
                f"{path}, line {last}: the log stops here without {_EXIT!r}, {inside}; {_stop(blocks)}; {way}"
            )
        stopped = f"; warning: the log stops at line {last} without {_EXIT!r}" + (
            f", {inside}, which is left out" if inside else ": if the program was to launch more, that is not in it"
        )
    _check_clocks(path, told, options)
    hertz = _clock(path, hertz, options)
    groups, said = group_launches(str(path), _launches(path, blocks, hertz), options)
    used = [launch for group in groups for launch in group]
    return [
        Series(
            options.design,
            [sum((launch.seconds for launch in group), Fraction(0)) for group in groups],
            "simulated",
            f"GPGPU-Sim log {path}",
            {
                "iterations": said + stopped,
                "network": whose_log(str(path), [(block.name, block.line) for block in blocks], options),
                "column": "'gpu_sim_cycle' of each kernel",
                "clock_hz": float(hertz),
                "cycles": int(sum(launch.seconds for launch in used) * hertz),
                "launches": len(used),
                "kernels": kernel_table(used),
                "not_in_the_time": "the host, and the gaps between kernels, which the simulator does not model",
            },
        )
    ]


def _unfinished(blocks: list[_Block], launched: dict[str, list[int]]) -> str:
    """What was launched and has no whole statistics, in words; empty if nothing."""
    if len(blocks[-1].values) < len(_ORDER):
        return f"inside the statistics of {blocks[-1].name!r} from line {blocks[-1].line}"
    finished = sum(len(block.values["kernel_launch_uid"][1].split()) for block in blocks)
    last = blocks[-1].values[_ORDER[-1]][0]
    for lines in launched.values():
        if len(lines) > finished or (lines and lines[-1] > last):
            return f"inside the kernel launched at line {lines[-1]}"
    return ""


def _core_clock(where: str, line: str, before: Fraction | None) -> Fraction:
    parts = line.removeprefix(_CLOCKS).strip().split(":")
    if len(parts) != 4:
        raise ValueError(f"{where}: expected four clocks in Hz, core:interconnect:L2:DRAM, got {line!r}")
    hertz = number(where, "the core clock", parts[0])
    if before not in (None, hertz):
        raise ValueError(f"{where}: another core clock, {parts[0]} Hz; expected one simulation in the file; split it")
    return hertz


def _check_clocks(path: Path, told: dict[str, tuple[int, Fraction]], options: Options) -> None:
    """Raise ValueError where the log's lines, and what is stated, do not give one core clock."""
    stated = None if options.clock is None else (0, options.clock)
    line, hertz = told.get(_CLOCKS, stated) or (0, None)
    for mark, (other, value) in told.items() if hertz is not None else ():
        if mark != _CLOCKS and abs(value - hertz) > hertz / 10000:
            where = f"{path}, line {line}: a core clock of" if line else f"{path}: --clock says"
            raise ValueError(
                f"{where} {float(hertz):g} Hz, where {mark!r} at line {other} is {float(value):g} Hz; one is wrong"
            )


def _clock(path: Path, hertz: Fraction | None, options: Options) -> Fraction:
    if hertz is None and options.clock is None:
        raise ValueError(
            f"{path}, line 1: no line {_CLOCKS!r}, so that cycles cannot become seconds; keep the whole log, or state "
            'the core clock: --clock "1417 MHz"'
        )
    if hertz is not None and options.clock not in (None, hertz):
        raise ValueError(
            f"{path}: the log states a core clock of {float(hertz):g} Hz where --clock says {float(options.clock):g} "
            "Hz; leave --clock out, it is for logs without one"
        )
    return options.clock if hertz is None else hertz


def _take(where: str, line: int, key: str, value: str, blocks: list[_Block]) -> None:
    if key == "kernel_name":
        if blocks and len(blocks[-1].values) < len(_ORDER):
            lacking = next(name for name in _ORDER if name not in blocks[-1].values)
            raise ValueError(
                f"{where}: a kernel's statistics begin where those of {blocks[-1].name!r}, line {blocks[-1].line}, "
                f"lack {lacking}; lines are missing; keep the whole log"
            )
        if not value:
            raise ValueError(f"{where}: kernel_name names no kernel; keep the whole log")
        blocks.append(_Block(line, value, {}))
    elif not blocks:
        raise ValueError(f"{where}: {key} before any kernel_name; the beginning is missing; keep the whole log")
    values = blocks[-1].values
    if key in values:
        raise ValueError(
            f"{where}: {key} again for {blocks[-1].name!r}, after line {values[key][0]}; were two logs mixed? Expected "
            "one simulation in the file"
        )
    if key != "kernel_launch_uid" and _ORDER.index(key) > 1 and _ORDER[_ORDER.index(key) - 1] not in values:
        raise ValueError(
            f"{where}: {key} of {blocks[-1].name!r} without {_ORDER[_ORDER.index(key) - 1]} before it; lines are "
            "missing; keep the whole log"
        )
    values[key] = (line, value)


def _stop(blocks: list[_Block]) -> str:
    done = [block for block in blocks if len(block.values) == len(_ORDER)]
    if not done:
        return "no kernel had finished"
    return (
        f"the last finished kernel is {done[-1].name!r} (launch {done[-1].values['kernel_launch_uid'][1]}) at line "
        f"{done[-1].line}"
    )


def _launches(path: Path, blocks: list[_Block], hertz: Fraction) -> list[Launch]:
    launches, seen = [], {}
    totals = {"gpu_tot_sim_cycle": 0, "gpu_tot_sim_insn": 0}
    for block in blocks:
        numbers = {}
        for key in _ORDER[2:]:
            line, value = block.values[key]
            numbers[key] = count(f"{path}, line {line}", key, value, positive=key == "gpu_sim_cycle")
        for total, part in (("gpu_tot_sim_cycle", "gpu_sim_cycle"), ("gpu_tot_sim_insn", "gpu_sim_insn")):
            expected = totals[total] + numbers[part]
            if numbers[total] != expected:
                raise ValueError(
                    f"{path}, line {block.values[total][0]}: {total} is {numbers[total]} where the launches up to "
                    f"{block.name!r} add up to {expected}; launches are missing from the log; keep the whole log"
                )
            totals[total] = numbers[total]
        line, uids = block.values["kernel_launch_uid"]
        for uid in uids.split():
            if uid in seen:
                raise ValueError(
                    f"{path}, line {line}: launch {uid} again, after line {seen[uid]}; expected one simulation in the "
                    "file; split it"
                )
            seen[uid] = line
        launches.append(Launch(block.name, block.line, numbers["gpu_sim_cycle"] / hertz, numbers["gpu_sim_insn"]))
    return launches
