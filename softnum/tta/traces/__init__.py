"""Chakra execution traces: what each rank of a job computes and sends, for simulators of whole systems."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.tta.traces.facts import trace_time, workload_of_trace
    from softnum.tta.traces.folder import check_ranks, write_traces
    from softnum.tta.traces.plans import plan_traces
    from softnum.tta.traces.ranks import RankTraces, data_parallel_traces
    from softnum.tta.traces.schema import load_chakra_schema
    from softnum.tta.traces.trace import Trace, TraceAttribute, TraceIO, TraceNode, read_trace, write_trace
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.tta.traces.facts": ("trace_time", "workload_of_trace"),
            "softnum.tta.traces.folder": ("check_ranks", "write_traces"),
            "softnum.tta.traces.plans": ("plan_traces",),
            "softnum.tta.traces.ranks": ("RankTraces", "data_parallel_traces"),
            "softnum.tta.traces.schema": ("load_chakra_schema",),
            "softnum.tta.traces.trace": (
                "Trace",
                "TraceAttribute",
                "TraceIO",
                "TraceNode",
                "read_trace",
                "write_trace",
            ),
        },
    )

__all__ = [
    "RankTraces",
    "Trace",
    "TraceAttribute",
    "TraceIO",
    "TraceNode",
    "check_ranks",
    "data_parallel_traces",
    "load_chakra_schema",
    "plan_traces",
    "read_trace",
    "trace_time",
    "workload_of_trace",
    "write_trace",
    "write_traces",
]
