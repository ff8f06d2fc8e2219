"""Every function of softnum that reads a file which somebody else may have made, and files that are none of these."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Callable
from pathlib import Path

__all__ = ["MALFORMED", "READERS", "reader"]

#: function -> what it takes beside the path
READERS: dict[str, dict] = {
    "softnum.load": {},
    "softnum.cli.which.read_array": {},
    "softnum.inspect.disclosure.reading.read": {},
    "softnum.train.load_design": {},
    "softnum.train.studies.study_file.read_study": {},
    "softnum.train.studies.law_plan.read_seconds": {},
    "softnum.vectors.check": {},
    "softnum.vectors.covered.files.read_coverage": {},
    "softnum.tta.load_reports": {},
    "softnum.tta.read_results": {},
    "softnum.tta.read_timings": {},
    "softnum.tta.accuracy.records.read_record": {},
    "softnum.tta.accuracy.read_accuracy": {},
    "softnum.tta.arithmetic_law.read_any_law": {},
    "softnum.tta.architectures.sweep_measured.read_measured": {"kinds": ("fc",)},
    "softnum.tta.counters.kernels.read_ncu_counters": {},
    "softnum.tta.counters.layers.read_kernel_layers": {},
    "softnum.tta.counters.perf.read_perf_stat": {},
    "softnum.tta.estimates.device_files.devices": {},
    "softnum.tta.estimates.gemm_tables.GemmTable.read": {},
    "softnum.tta.estimates.merit.read_rates": {},
    "softnum.tta.forecasts.results.read_forecasts": {},
    "softnum.tta.html.folder.read_folder": {},
    "softnum.tta.law_runs.read_runs": {},
    "softnum.tta.mllog.read_mllog": {},
    "softnum.tta.parallelism.system.read_system": {},
    "softnum.tta.scaling_law.read_law": {},
    "softnum.tta.simulators.reports.read_requests": {},
    "softnum.tta.simulators.scalesim_report.read_scalesim": {"design": "a", "clock": "1 GHz"},
    "softnum.tta.simulators.synthesis._library_text": {},
    "softnum.tta.simulators.zigzag_report.read_zigzag": {"design": "a", "clock": "1 GHz"},
    "softnum.tta.traces.trace.read_trace": {},
    "softnum.tta.traces.folder.read_groups": {},
    "softnum.tta.traces.folder.read_job": {},
    "softnum.tta.workloads.energy_files.read_energy_table": {},
    "softnum.tta.workloads.energy_files.read_ert": {},
    "softnum.tta.workloads.files.read_workloads": {},
    "softnum.tta.workloads.layer_times.read_layer_times": {},
}
_DEEP = 30_000
_ENTITIES = b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
_ALIASES = b"".join(b"%c: &%c [*%c, *%c]\n" % (98 + i, 98 + i, 97 + i, 97 + i) for i in range(20))
_NUMPY = b"\x93NUMPY\x01\x00v\x00{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }"
#: name -> content of a file that no reader takes
MALFORMED: dict[str, bytes] = {
    "empty": b"",
    "zeros": bytes(4096),
    "no UTF-8": b"\xff\xfe\x00a = 1\n" * 20,
    "deep list": b"[" * _DEEP,
    "deep table": b'{"a":' * _DEEP,
    "deep value": b"a = " + b"[" * _DEEP,
    "deep YAML": b"top:\n  a: " + b"[" * _DEEP,
    "long number": b'{"a": ' + b"9" * 5000 + b"}",
    "long number in TOML": b"a = " + b"9" * 5000,
    "XML entities": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + _ENTITIES + b"]><a>&j;</a>",
    "an entity of a file": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hosts">]><a>&x;</a>',
    "YAML that makes objects": b"a: !!python/object/apply:os.system ['echo run > ran']\n",
    "YAML aliases": b"a: &a [x]\n" + _ALIASES,
    "cut off gzip": gzip.compress(b"a,b\n" * 1000, mtime=0)[:40],
    "a pickle": b"cos\nsystem\n(S'echo run > ran'\ntR.",
    "ZIP": b"PK\x03\x04" + bytes(100),
    "NumPy with objects": (_NUMPY % (b"|O", 1)).ljust(128) + b"\x80\x04cos\nsystem\n(S'echo run > ran'\ntR.",
    "NumPy of 2^62 numbers": (_NUMPY % (b"<f8", 1 << 62)).ljust(127) + b"\n",
}


def reader(name: str) -> Callable[[Path], object]:
    """The function of a name, which takes a path."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return lambda path: found(path, **READERS[name])
    raise AssertionError(f"no module has {name}")
