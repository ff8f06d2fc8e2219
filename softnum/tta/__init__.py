"""Time-to-accuracy: seconds per iteration (a simulator's) times iterations to accuracy (the emulated training's).

Three steps, each usable on its own::

    records = read_records("out/records")                        # what training wrote
    times   = scalesim_variants(points, baseline="a-float32")    # or [read_timings("times.csv")]
    studies = [combine_study(records, time, target=0.95, baseline="a-float32") for time in times]

and then `print_studies`, `write_results` and `plot_studies`; `study_variants` and `conclude` do all of it. Nothing here
trains or imports training code; matplotlib and rich are imported when they are used.
"""

from softnum.tta.accuracy.records import Evaluation, Record, RecordSet, design_points, read_record, read_records
from softnum.tta.combine import DesignResult, Run, Spread, Study, Variant, combine_study
from softnum.tta.hardware import DesignPoint, Gemm, Hardware, MultiplierArea, equal_area, multiplier_areas
from softnum.tta.mllog import MLLog, MLLogEvent, read_mllog
from softnum.tta.quantities import bandwidth, frequency
from softnum.tta.report import plot_studies, print_studies, results_dict, write_results
from softnum.tta.simulators.scalesim import (
    ASSUMPTIONS,
    NOT_SIMULATED,
    GemmCycles,
    Machine,
    machine_for,
    read_compute_report,
    read_scalesim,
    write_inputs,
)
from softnum.tta.simulators.simulation import (
    SCALESIM_VERSION,
    MissingReport,
    Simulations,
    create_environment,
    load_reports,
    read_requests,
    scalesim_timings,
    scalesim_variants,
    simulate,
    write_requests,
)
from softnum.tta.study import conclude, study_variants
from softnum.tta.timings import (
    IterationTime,
    TimingFormat,
    gather_timings,
    mean_interval,
    mser5,
    read_timings,
    write_timings,
)
from softnum.tta.workload import STAGES, TENSOR_CLASSES, Operation, StoredTensor, Workload

__all__ = [
    "ASSUMPTIONS",
    "NOT_SIMULATED",
    "SCALESIM_VERSION",
    "STAGES",
    "TENSOR_CLASSES",
    "DesignPoint",
    "DesignResult",
    "Evaluation",
    "Gemm",
    "GemmCycles",
    "Hardware",
    "IterationTime",
    "MLLog",
    "MLLogEvent",
    "Machine",
    "MissingReport",
    "MultiplierArea",
    "Operation",
    "Record",
    "RecordSet",
    "Run",
    "Simulations",
    "Spread",
    "StoredTensor",
    "Study",
    "TimingFormat",
    "Variant",
    "Workload",
    "bandwidth",
    "combine_study",
    "conclude",
    "create_environment",
    "design_points",
    "equal_area",
    "frequency",
    "gather_timings",
    "load_reports",
    "machine_for",
    "mean_interval",
    "mser5",
    "multiplier_areas",
    "plot_studies",
    "print_studies",
    "read_compute_report",
    "read_mllog",
    "read_record",
    "read_records",
    "read_requests",
    "read_scalesim",
    "read_timings",
    "results_dict",
    "scalesim_timings",
    "scalesim_variants",
    "simulate",
    "study_variants",
    "write_inputs",
    "write_requests",
    "write_results",
    "write_timings",
]
