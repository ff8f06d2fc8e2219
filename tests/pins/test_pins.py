"""What a change of structure must keep: the digests and snapshots that `record.py` wrote before it.

A pin that changes on purpose is written again (``python tests/pins/record.py AREA``) in a commit that says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RECORD = Path(__file__).with_name("record.py")
BITS = ("conversions", "operations", "matrices", "convolutions", "records")
TEXTS = ("traces", "vectors", "names", "commands", "schemas")
ISAS = ("portable", "avx2", "avx512", "neon")
IN_FULL = (("avx512", "2"),)  # the others take up to twice as long


def recomputed(*areas: str, **environment: str) -> dict[str, dict[str, str]]:
    """Areas computed by a process of its own: the instruction set is chosen when softnum is imported."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(RECORD), "--json", *areas], env=os.environ | environment,
        capture_output=True, encoding="utf-8", timeout=1500, check=False,
    )  # fmt: skip
    if "this CPU or build runs only" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def compare(got: dict[str, dict[str, str]]) -> None:
    """Name the cases that differ; `record.py --print` of two builds shows how."""
    for area, cases in got.items():
        want = json.loads(RECORD.with_name(f"{area}.json").read_text(encoding="utf-8"))
        differing = [
            f"{area}: {case}: pinned {want.get(case)}, now {cases.get(case)}"
            for case in [*want, *(case for case in cases if case not in want)]
            if want.get(case) != cases.get(case)
        ]
        assert not differing, f"{len(differing)} of {len(want)} cases:\n" + "\n".join(differing[:20])


@pytest.mark.parametrize(
    ("isa", "threads"),
    [
        pytest.param(isa, threads, marks=[] if (isa, threads) in IN_FULL else pytest.mark.slow)
        for isa in ISAS
        for threads in ("1", "2")
    ],
)
def test_bits(isa, threads):
    compare(recomputed(*BITS, SOFTNUM_CPU=isa, SOFTNUM_THREADS=threads))


def test_texts_names_and_schemas():
    compare(recomputed(*TEXTS))


@pytest.mark.slow
def test_commands_and_their_exit_codes():
    compare(recomputed("runs"))


def test_symbols_of_the_simulators_library():
    compare(recomputed("symbols"))


@pytest.mark.slow
def test_device_source_and_machine_code():
    compare(recomputed("device", NUMBA_ENABLE_CUDASIM="0"))


def test_a_changed_pin_is_found():
    got = {"convolutions": json.loads(RECORD.with_name("convolutions.json").read_text(encoding="utf-8"))}
    compare(got)
    case = next(iter(got["convolutions"]))
    got["convolutions"][case] = "0" * 16
    with pytest.raises(AssertionError, match="1 of 60 cases"):
        compare(got)
    del got["convolutions"][case]
    with pytest.raises(AssertionError, match="now None"):
        compare(got)
