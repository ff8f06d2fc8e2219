"""Time-to-accuracy: seconds per iteration (a simulator's) times iterations to accuracy (the emulated training's).

Three steps, each usable on its own::

    records = read_records("out/records")                        # what training wrote
    times   = scalesim_variants(points, baseline="a-float32")    # or [read_timings("times.csv")]
    studies = [combine_study(records, time, target=0.95, baseline="a-float32") for time in times]

and then `print_studies`, `write_results` and `plot_studies`; `study_variants` and `conclude` do all of it. Nothing here
trains or imports training code; matplotlib and rich are imported when they are used.
"""

from softnum.runtime.plain import PlainEnvironment

with PlainEnvironment():  # they compute constants
    from softnum.tta.accuracy.reached import DIRECTIONS, ReachedRule, direction_of
    from softnum.tta.accuracy.reading import ACCURACY_FORMATS, AccuracyFormat, read_accuracy
    from softnum.tta.accuracy.records import Evaluation, Record, RecordSet, design_points, read_record, read_records
    from softnum.tta.architectures import Architecture, Precision, architecture, architecture_names, lower
    from softnum.tta.counters import (
        KernelCounters,
        MeasuredLayers,
        MeasuredPart,
        PerfEvent,
        PerfStat,
        kernel_counters,
        measured_layers,
        read_kernel_layers,
        read_ncu_counters,
        read_perf_stat,
    )
    from softnum.tta.estimates import (
        FARTHEST,
        Device,
        GemmEstimate,
        GemmTable,
        GemmTime,
        Inference,
        Money,
        Peak,
        RollUp,
        Roofline,
        RooflineRow,
        Utilisation,
        device,
        devices,
        figure_of_merit,
        inference,
        matrix_share,
        measure_gemms,
        plot_roofline,
        read_rates,
        roll_up,
        roofline,
        units_per_day,
        utilisation,
    )
    from softnum.tta.forecasts import (
        FORECAST_SCHEMA,
        Amount,
        Forecast,
        Given,
        forecast,
        read_forecasts,
        read_ways,
        write_forecasts,
    )
    from softnum.tta.html import Report, export_report, load_report, write_report
    from softnum.tta.mllog import MLLog, MLLogEvent, read_mllog
    from softnum.tta.mlperf.benchmarks import MLPerfRun, MLPerfScore, MLPerfTarget, mlperf_score
    from softnum.tta.outcomes.combine import combine_study
    from softnum.tta.outcomes.cost import Cost, read_costs
    from softnum.tta.outcomes.interaction import Factors, Interaction, interaction, predicted_speedup, read_combination
    from softnum.tta.outcomes.intervals import bootstrap_interval, ratio_interval, share_interval
    from softnum.tta.outcomes.measured import measured_variant
    from softnum.tta.outcomes.outcome import (
        CostResult,
        DesignResult,
        EnergyResult,
        Intervals,
        Run,
        Spread,
        Study,
        Variant,
    )
    from softnum.tta.outcomes.report import plot_details, plot_studies, print_studies
    from softnum.tta.outcomes.resource_plots import plot_memory, plot_parallel
    from softnum.tta.outcomes.results import RESULTS_SCHEMA, read_results, results_dict, write_results
    from softnum.tta.parallelism import (
        Checkpoints,
        Communication,
        Parallelism,
        StepMemory,
        StepPlan,
        StepTime,
        System,
        Tier,
        check_memory,
        checkpoints,
        plan_step,
        read_system,
        step_memory,
        step_time,
        system,
        systems,
    )
    from softnum.tta.programs import PROGRAM_FORMATS, ProgramFormat, export_program
    from softnum.tta.quantities import bandwidth, bit_rate, byte_size, duration, flop_rate, frequency
    from softnum.tta.simulators.astrasim import AstraSystem, NetworkDimension, run_astrasim, write_astrasim
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
    from softnum.tta.study import conclude, outcome_rules, study_variants
    from softnum.tta.timings import (
        IterationTime,
        TimingFormat,
        gather_timings,
        mean_interval,
        mser5,
        read_timings,
        write_timings,
    )
    from softnum.tta.traces.facts import trace_time, workload_of_trace
    from softnum.tta.traces.folder import check_ranks, write_traces
    from softnum.tta.traces.plans import plan_traces
    from softnum.tta.traces.ranks import RankTraces, data_parallel_traces
    from softnum.tta.traces.schema import load_chakra_schema
    from softnum.tta.traces.trace import Trace, TraceAttribute, TraceIO, TraceNode, read_trace, write_trace
    from softnum.tta.workloads.areas import MultiplierArea, equal_area, multiplier_areas
    from softnum.tta.workloads.energy import (
        ENERGY_KINDS,
        ENERGY_TABLES,
        Energy,
        OperationEnergy,
        energy_of,
        operation_energy,
    )
    from softnum.tta.workloads.energy_files import read_energy_table
    from softnum.tta.workloads.energy_prices import EnergyTable
    from softnum.tta.workloads.exchange import Exchange, ParallelTime, Transfer, gradient_bytes
    from softnum.tta.workloads.files import read_workloads, write_workloads
    from softnum.tta.workloads.hardware import DesignPoint, Gemm, Hardware
    from softnum.tta.workloads.layer_times import gemm_layer_times, read_layer_times
    from softnum.tta.workloads.memory import Memory, largest_batch, memory_of, memory_table
    from softnum.tta.workloads.network_time import exposed_time, minimum_bandwidth, parallel_sweep, parallel_time
    from softnum.tta.workloads.operations import (
        STAGES,
        TENSOR_CLASSES,
        Operation,
        StoredTensor,
        Workload,
        workload_of_gemms,
    )
    from softnum.tta.workloads.products import ProductName, network_digest, read_product_name
    from softnum.tta.workloads.served import ServedTime, served_time
    from softnum.tta.workloads.unit import UnitHardware

__all__ = [
    "ACCURACY_FORMATS",
    "ASSUMPTIONS",
    "Checkpoints",
    "AccuracyFormat",
    "Amount",
    "Architecture",
    "AstraSystem",
    "Communication",
    "Cost",
    "CostResult",
    "DIRECTIONS",
    "DesignPoint",
    "DesignResult",
    "Device",
    "ENERGY_KINDS",
    "ENERGY_TABLES",
    "Energy",
    "EnergyTable",
    "EnergyResult",
    "Evaluation",
    "Exchange",
    "FARTHEST",
    "FORECAST_SCHEMA",
    "Forecast",
    "Factors",
    "Gemm",
    "GemmCost",
    "GemmCycles",
    "GemmEstimate",
    "GemmTable",
    "GemmTime",
    "Given",
    "Hardware",
    "Inference",
    "Interaction",
    "Intervals",
    "IterationTime",
    "KernelCounters",
    "MLLog",
    "MLLogEvent",
    "MLPerfRun",
    "MLPerfScore",
    "MLPerfTarget",
    "Machine",
    "MeasuredLayers",
    "MeasuredPart",
    "Memory",
    "MissingReport",
    "Money",
    "MultiplierArea",
    "NOT_SIMULATED",
    "NetworkDimension",
    "Operation",
    "OperationEnergy",
    "PROGRAM_FORMATS",
    "ParallelTime",
    "Parallelism",
    "Peak",
    "PerfEvent",
    "PerfStat",
    "Precision",
    "ProductName",
    "ProgramFormat",
    "RESULTS_SCHEMA",
    "RankTraces",
    "ReachedRule",
    "Record",
    "RecordSet",
    "Report",
    "RollUp",
    "Roofline",
    "RooflineRow",
    "Run",
    "SCALESIM_VERSION",
    "STAGES",
    "ServedTime",
    "Simulations",
    "Spread",
    "StepMemory",
    "StepPlan",
    "StepTime",
    "StoredTensor",
    "System",
    "Study",
    "TENSOR_CLASSES",
    "Tier",
    "TimingFormat",
    "Trace",
    "TraceAttribute",
    "TraceIO",
    "TraceNode",
    "Transfer",
    "Utilisation",
    "UnitHardware",
    "Variant",
    "Workload",
    "ZIGZAG_ASSUMPTIONS",
    "ZIGZAG_VERSION",
    "architecture",
    "architecture_names",
    "bandwidth",
    "bit_rate",
    "bootstrap_interval",
    "byte_size",
    "check_memory",
    "check_ranks",
    "checkpoints",
    "combine_study",
    "conclude",
    "create_environment",
    "data_parallel_traces",
    "design_points",
    "device",
    "devices",
    "direction_of",
    "duration",
    "energy_of",
    "equal_area",
    "exposed_time",
    "export_program",
    "export_report",
    "figure_of_merit",
    "flop_rate",
    "frequency",
    "forecast",
    "gather_timings",
    "gemm_layer_times",
    "gradient_bytes",
    "inference",
    "interaction",
    "kernel_counters",
    "largest_batch",
    "load_chakra_schema",
    "load_report",
    "load_reports",
    "lower",
    "machine_for",
    "matrix_share",
    "mean_interval",
    "measure_gemms",
    "measured_layers",
    "measured_variant",
    "memory_of",
    "mlperf_score",
    "memory_table",
    "minimum_bandwidth",
    "mser5",
    "multiplier_areas",
    "network_digest",
    "operation_energy",
    "outcome_rules",
    "parallel_sweep",
    "parallel_time",
    "plan_step",
    "plan_traces",
    "plot_memory",
    "plot_parallel",
    "plot_roofline",
    "plot_details",
    "plot_studies",
    "predicted_speedup",
    "print_studies",
    "ratio_interval",
    "read_accuracy",
    "read_combination",
    "read_compute_report",
    "read_costs",
    "read_energy_table",
    "read_forecasts",
    "read_kernel_layers",
    "read_layer_times",
    "read_mllog",
    "read_ncu_counters",
    "read_perf_stat",
    "read_product_name",
    "read_rates",
    "read_record",
    "read_records",
    "read_requests",
    "read_results",
    "read_scalesim",
    "read_system",
    "read_timings",
    "read_trace",
    "read_ways",
    "read_workloads",
    "read_zigzag",
    "results_dict",
    "roll_up",
    "roofline",
    "run_astrasim",
    "scalesim_timings",
    "scalesim_variants",
    "served_time",
    "share_interval",
    "simulate",
    "step_memory",
    "step_time",
    "study_variants",
    "system",
    "systems",
    "trace_time",
    "units_per_day",
    "utilisation",
    "workload_of_gemms",
    "workload_of_trace",
    "write_astrasim",
    "write_forecasts",
    "write_inputs",
    "write_report",
    "write_requests",
    "write_results",
    "write_timings",
    "write_trace",
    "write_traces",
    "write_workloads",
    "zigzag_timings",
    "zigzag_variants",
]
