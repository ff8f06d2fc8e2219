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
from softnum.tta.energy import ENERGY_KINDS, ENERGY_TABLES, Energy, OperationEnergy, energy_of, operation_energy
from softnum.tta.hardware import DesignPoint, Gemm, Hardware, MultiplierArea, equal_area, multiplier_areas
from softnum.tta.quantities import bandwidth, frequency
from softnum.tta.report import plot_studies, print_studies, results_dict, write_results
from softnum.tta.simulators.environment import create_environment
from softnum.tta.simulators.reports import MissingReport, Simulations, load_reports, read_requests, write_requests
from softnum.tta.simulators.scalesim import ASSUMPTIONS, NOT_SIMULATED, Machine, machine_for, write_inputs
from softnum.tta.simulators.scalesim_report import GemmCycles, read_compute_report, read_scalesim
from softnum.tta.simulators.simulation import (
    SCALESIM_VERSION,
    ZIGZAG_VERSION,
    scalesim_timings,
    simulate,
    zigzag_timings,
)
from softnum.tta.simulators.variants import scalesim_variants, zigzag_variants
from softnum.tta.simulators.zigzag import ZIGZAG_ASSUMPTIONS
from softnum.tta.simulators.zigzag_report import GemmCost, read_zigzag
from softnum.tta.study import conclude, study_variants
from softnum.tta.timings import IterationTime, read_timings
from softnum.tta.workload import STAGES, TENSOR_CLASSES, Operation, StoredTensor, Workload

__all__ = [
    "ASSUMPTIONS",
    "ENERGY_KINDS",
    "ENERGY_TABLES",
    "NOT_SIMULATED",
    "SCALESIM_VERSION",
    "STAGES",
    "TENSOR_CLASSES",
    "ZIGZAG_ASSUMPTIONS",
    "ZIGZAG_VERSION",
    "DesignPoint",
    "DesignResult",
    "Energy",
    "Evaluation",
    "Gemm",
    "GemmCost",
    "GemmCycles",
    "Hardware",
    "IterationTime",
    "Machine",
    "MissingReport",
    "MultiplierArea",
    "Operation",
    "OperationEnergy",
    "Record",
    "RecordSet",
    "Run",
    "Simulations",
    "Spread",
    "StoredTensor",
    "Study",
    "Variant",
    "Workload",
    "bandwidth",
    "combine_study",
    "conclude",
    "create_environment",
    "design_points",
    "energy_of",
    "equal_area",
    "frequency",
    "load_reports",
    "machine_for",
    "multiplier_areas",
    "operation_energy",
    "plot_studies",
    "print_studies",
    "read_compute_report",
    "read_record",
    "read_records",
    "read_requests",
    "read_scalesim",
    "read_timings",
    "read_zigzag",
    "results_dict",
    "scalesim_timings",
    "scalesim_variants",
    "simulate",
    "study_variants",
    "write_inputs",
    "write_requests",
    "write_results",
    "zigzag_timings",
    "zigzag_variants",
]
