"""Time-to-accuracy: seconds per iteration (a simulator's) times iterations to accuracy (the emulated training's).

Three steps, each usable on its own::

    records = read_records("out/records")                        # what training wrote
    times   = scalesim_variants(points, baseline="a-float32")    # or [read_timings("times.csv")]
    studies = [combine_study(records, time, target=0.95, baseline="a-float32") for time in times]

and then `print_studies`, `write_results` and `plot_studies`; `study_variants` and `conclude` do all of it. Nothing here
trains or imports training code; matplotlib and rich are imported when they are used.
"""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.tta import accuracy as accuracy
    from softnum.tta import architectures as architectures
    from softnum.tta import counters as counters
    from softnum.tta import estimates as estimates
    from softnum.tta import forecasts as forecasts
    from softnum.tta import html as html
    from softnum.tta import mllog as mllog
    from softnum.tta import mlperf as mlperf
    from softnum.tta import onnx as onnx
    from softnum.tta import outcomes as outcomes
    from softnum.tta import parallelism as parallelism
    from softnum.tta import programs as programs
    from softnum.tta import quantities as quantities
    from softnum.tta import simulators as simulators
    from softnum.tta import study as study
    from softnum.tta import timings as timings
    from softnum.tta import traces as traces
    from softnum.tta import workloads as workloads
    from softnum.tta.accuracy.reached import ReachedRule
    from softnum.tta.accuracy.reading import read_accuracy
    from softnum.tta.accuracy.records import Evaluation, Record, design_points, read_records
    from softnum.tta.architectures.catalogue import architecture
    from softnum.tta.architectures.lowering import lower
    from softnum.tta.estimates.device_files import device, devices
    from softnum.tta.estimates.rooflines import roofline
    from softnum.tta.forecasts.forecast import forecast
    from softnum.tta.forecasts.results import read_forecasts, write_forecasts
    from softnum.tta.html.report import write_report
    from softnum.tta.outcomes.combine import combine_study
    from softnum.tta.outcomes.interaction import interaction
    from softnum.tta.outcomes.outcome import Study, Variant
    from softnum.tta.outcomes.report import plot_studies, print_studies
    from softnum.tta.outcomes.results import read_results, write_results
    from softnum.tta.simulators.reports import load_reports
    from softnum.tta.simulators.simulation import scalesim_timings, simulate
    from softnum.tta.simulators.variants import scalesim_variants
    from softnum.tta.study import conclude, study_variants
    from softnum.tta.timings.formats import gather_timings, read_timings
    from softnum.tta.timings.tables import write_timings
    from softnum.tta.workloads.energy import energy_of
    from softnum.tta.workloads.files import read_workloads, write_workloads
    from softnum.tta.workloads.hardware import DesignPoint, Gemm, Hardware
    from softnum.tta.workloads.iteration import IterationTime
    from softnum.tta.workloads.memory import memory_of
    from softnum.tta.workloads.network_time import parallel_time
    from softnum.tta.workloads.operations import Operation, Workload, workload_of_gemms
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.tta.accuracy.reached": ("ReachedRule",),
            "softnum.tta.accuracy.reading": ("read_accuracy",),
            "softnum.tta.accuracy.records": ("Evaluation", "Record", "design_points", "read_records"),
            "softnum.tta.architectures.catalogue": ("architecture",),
            "softnum.tta.architectures.lowering": ("lower",),
            "softnum.tta.estimates.device_files": ("device", "devices"),
            "softnum.tta.estimates.rooflines": ("roofline",),
            "softnum.tta.forecasts.forecast": ("forecast",),
            "softnum.tta.forecasts.results": ("read_forecasts", "write_forecasts"),
            "softnum.tta.html.report": ("write_report",),
            "softnum.tta.outcomes.combine": ("combine_study",),
            "softnum.tta.outcomes.interaction": ("interaction",),
            "softnum.tta.outcomes.outcome": ("Study", "Variant"),
            "softnum.tta.outcomes.report": ("plot_studies", "print_studies"),
            "softnum.tta.outcomes.results": ("read_results", "write_results"),
            "softnum.tta.simulators.reports": ("load_reports",),
            "softnum.tta.simulators.simulation": ("scalesim_timings", "simulate"),
            "softnum.tta.simulators.variants": ("scalesim_variants",),
            "softnum.tta.study": ("conclude", "study_variants"),
            "softnum.tta.timings.formats": ("gather_timings", "read_timings"),
            "softnum.tta.timings.tables": ("write_timings",),
            "softnum.tta.workloads.energy": ("energy_of",),
            "softnum.tta.workloads.files": ("read_workloads", "write_workloads"),
            "softnum.tta.workloads.hardware": ("DesignPoint", "Gemm", "Hardware"),
            "softnum.tta.workloads.iteration": ("IterationTime",),
            "softnum.tta.workloads.memory": ("memory_of",),
            "softnum.tta.workloads.network_time": ("parallel_time",),
            "softnum.tta.workloads.operations": ("Operation", "Workload", "workload_of_gemms"),
        },
        (
            "accuracy",
            "architectures",
            "counters",
            "estimates",
            "forecasts",
            "html",
            "mllog",
            "mlperf",
            "onnx",
            "outcomes",
            "parallelism",
            "programs",
            "quantities",
            "simulators",
            "study",
            "timings",
            "traces",
            "workloads",
        ),
    )

__all__ = [
    "DesignPoint",
    "Evaluation",
    "Gemm",
    "Hardware",
    "IterationTime",
    "Operation",
    "ReachedRule",
    "Record",
    "Study",
    "Variant",
    "Workload",
    "architecture",
    "combine_study",
    "conclude",
    "design_points",
    "device",
    "devices",
    "energy_of",
    "forecast",
    "gather_timings",
    "interaction",
    "load_reports",
    "lower",
    "memory_of",
    "parallel_time",
    "plot_studies",
    "print_studies",
    "read_accuracy",
    "read_forecasts",
    "read_records",
    "read_results",
    "read_timings",
    "read_workloads",
    "roofline",
    "scalesim_timings",
    "scalesim_variants",
    "simulate",
    "study_variants",
    "workload_of_gemms",
    "write_forecasts",
    "write_report",
    "write_results",
    "write_timings",
    "write_workloads",
]
