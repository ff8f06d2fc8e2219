"""The quick tier: of the files named here each test, with one case for each kind of value that its parameters take.

Of a test's cases, in their order, one is quick if it shows an aspect that none before it has shown: a kind of format, a
family of rounding modes, a kind of unit. Of instruction sets the best of this machine is quick alone, and what is
marked slow, exhaustive or gpu is not quick.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import softnum as sn
from softnum.formats.modes import ROUNDING_MODES
from softnum.runtime import _core
from tests.support.cases import cases_of

__all__ = ["QUICK", "aspects", "choose", "name_of"]

#: folder: files, without "test_" and ".py". Files that take much for what they add are left out.
FILES = {
    "cli": "cli units",
    "collectives": "collective",
    "core": """
        array array_functions block_array block_formats block_paths block_regressions block_unit calls codes
        conv elementary encode_flags exact_paths exact_unit formats fp_environment fused_trace fused_unit
        fuzz_regressions in_and_out integers lanes mad_unit matmul_interface matmul_paths matmul_reference
        mixed_formats operations packing paths presets probe profiles quantize reference reference_operations
        reference_order regressions semantics softfloat statistics sums threads trace
    """,
    "custom": "formats_gemm formats_table",
    "house": "build collection floors imports mutants quick",
    "jax": "jax_products",
    "kernels": "carriers kernels_gemm patterns",
    "pins": "pins",
    "playground": "gemm",
    "rtl": "dpi rom",
    "tile": "tile_elementwise tile_gradients tile_language tile_loops",
    "torch": "torch_optimizer torch_quantize",
    "train": "train_lstm train_optimisers train_scaling train_schedules train_tensor",
    "tta": "tta_energy tta_intervals tta_memory tta_timing_errors",
    "vectors": "causes report unit_vectors vectors_faults vectors_oracles vectors_text",
}
QUICK = {f"{folder}/test_{name}.py" for folder, names in FILES.items() for name in names.split()}
#: tests of these files that take long for what they add
SLOWER = {
    "test_a_long_log",
    "test_a_missing_extra_is_told_before_anything_runs",
    "test_a_progress_bar_only_on_a_terminal",
    "test_a_run_is_the_same_on_two_threads_and_after_an_interruption",
    "test_a_table_and_a_picture",
    "test_a_wrong_instruction_set_is_unusable_input",
    "test_all_pairs_of_eight_bits",
    "test_an_interrupted_study_leaves_no_process_behind",
    "test_batches_broadcast",
    "test_commands_and_their_exit_codes",
    "test_decode_matches_the_facts_of_the_format",
    "test_every_order_of_steps",
    "test_flushing_in_the_basic_operations",
    "test_large_numbers_in_indices",
    "test_long_results_written_past_the_caches",
    "test_loops_give_the_bits_of_the_definition",
    "test_mixed",
    "test_mutated_files_are_read_or_refused_and_nothing_else",
    "test_pipes",
    "test_pipes_from_a_folder_with_a_space",
    "test_the_largest_batch_fits_and_the_next_does_not",
    "test_tta_from_designs_to_results",
    "test_tta_variants_of_the_hardware",
    "test_wide_formats",
}

ISAS = ("portable", "avx2", "avx512", "neon")
OTHER_TIERS = ("slow", "exhaustive", "gpu")


@cache
def _of_text(text: str) -> frozenset[str]:
    """A rounding mode's family, a format's aspects; other text stands for itself."""
    if text in ROUNDING_MODES:
        family = text.split("_")[0] if text.startswith(("nearest", "stochastic", "to_odd")) else "directed"
        return frozenset([f"rounding {family}"])
    try:
        return aspects(sn.format(text))
    except (ValueError, TypeError):
        return frozenset([text])


def aspects(value) -> frozenset[str]:
    """What a case with this parameter shows. Numbers count as none, one or more; sequences as what they hold."""
    if value is None or isinstance(value, bool):
        return frozenset([str(value)])
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, int | float):
        return frozenset([str(value) if value in (0, 1) else type(value).__name__])
    if isinstance(value, tuple | list | set | frozenset):
        return frozenset().union(*map(aspects, value))
    if isinstance(value, dict):
        return frozenset(f"{key} {aspect}" for key, held in value.items() for aspect in aspects(held))
    kind = type(value).__name__
    if hasattr(value, "bits") and hasattr(value, "kind"):  # a format
        width = next(width for width in (4, 8, 16, 32, 64, 128) if value.bits <= width)
        facts = {f.name: getattr(value, f.name) for f in fields(value)} if is_dataclass(value) else {}
        said = (
            f"{kind} {name} {fact}" for name, fact in facts.items() if isinstance(fact, str | bool) and name != "name"
        )
        return frozenset([f"{kind} of at most {width} bits", *said])
    if is_dataclass(value):
        held = {f.name: getattr(value, f.name, None) for f in fields(value) if f.name != "name"}
        return frozenset([kind, *(f"{name} {aspect}" for name, x in held.items() for aspect in aspects(x))])
    return frozenset([kind, getattr(value, "__name__", kind)])


def name_of(path: Path) -> str:
    """The name that QUICK has for a file."""
    return f"{path.parent.name}/{path.name}"


def choose(items) -> list[tuple]:
    """Those of the collected tests that are quick, each with its cases that are."""
    best = _core.available_isas()[-1]
    shown: dict[str, set] = {}
    chosen = []
    for item in items:
        if name_of(item.path) not in QUICK or item.originalname in SLOWER:
            continue
        if any(item.get_closest_marker(tier) for tier in OTHER_TIERS):
            continue
        test, quick = item.nodeid.partition("[")[0], []
        for case in cases_of(item):
            parameters = {**(item.callspec.params if hasattr(item, "callspec") else {}), **case.values}
            if any(value in ISAS and value != best for value in parameters.values() if isinstance(value, str)):
                continue
            own = {f"{name} {aspect}" for name, value in parameters.items() for aspect in aspects(value)}
            if test not in shown or not own <= shown[test]:
                quick.append(case)
            shown.setdefault(test, set()).update(own)
        if quick:
            chosen.append((item, quick))
    return chosen
