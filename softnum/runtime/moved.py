"""Names that have moved: the old place answers for one release, with a warning that names the new one.

The release that follows drops this table, and with it the old names.
"""

from __future__ import annotations

__all__ = ["LAST", "MOVED"]

#: the release that drops the old names
LAST = "0.2.0"
#: package of the old names -> package of the new ones -> the names
MOVED: dict[str, dict[str, tuple[str, ...]]] = {
    "softnum": {
        "softnum.arrays": ("FormatLostWarning", "pack", "unpack"),
        "softnum.collectives": ("Collective", "split_matmul"),
        "softnum.formats": ("block_format_names", "tile_scales", "untile_scales"),
        "softnum.inspect": (
            "Disclosure", "ErrorBound", "Identified", "Permitted", "PermittedProduct", "Probe", "Which",
        ),
        "softnum.mac": ("ime_unit", "RoundingStats"),
        "softnum.mac.products": ("conv2d_backward_data", "conv2d_backward_weight", "conv2d_winograd"),
        "softnum.ops": (
            "acos", "acosh", "acospi", "asin", "asinh", "asinpi", "atan", "atan2", "atan2pi", "atanh", "atanpi",
            "block_by_maximum", "block_reduction", "cbrt", "clamp", "compound", "copysign", "cosh", "cospi", "exp10",
            "exp10m1", "exp2m1", "from_integer", "hypot", "jam", "log10", "log10p1", "log2p1", "logaddexp",
            "logaddexp2", "logb", "maximum_finite", "maximum_magnitude", "maximum_magnitude_number", "maximum_number",
            "minimum_finite", "minimum_magnitude", "minimum_magnitude_number", "minimum_number", "pown", "powr",
            "rootn", "round_to_integral", "scalb", "scaled_operation", "shift", "sinh", "sinpi", "tan", "tanpi",
            "to_integer", "total_order", "ulp", "ulp_error",
        ),
        "softnum.tile": ("Operator", "TileError"),
    },
    "softnum.tta": {
        "softnum.tta.accuracy": (
            "ACCURACY_FORMATS", "AccuracyFormat", "direction_of", "DIRECTIONS", "read_record", "RecordSet",
        ),
        "softnum.tta.architectures": ("Architecture", "architecture_names", "Precision"),
        "softnum.tta.estimates": (
            "Device", "FARTHEST", "figure_of_merit", "GemmEstimate", "GemmTable", "GemmTime", "Inference",
            "inference", "matrix_share", "measure_gemms", "Money", "Peak", "plot_roofline", "read_rates", "roll_up",
            "RollUp", "Roofline", "RooflineRow", "units_per_day", "Utilisation", "utilisation",
        ),
        "softnum.tta.forecasts": ("Amount", "Forecast", "FORECAST_SCHEMA", "Given", "read_ways"),
        "softnum.tta.html": ("export_report", "load_report", "Report"),
        "softnum.tta.mllog": ("MLLog", "MLLogEvent", "read_mllog"),
        "softnum.tta.mlperf": ("mlperf_score", "MLPerfRun", "MLPerfScore", "MLPerfTarget"),
        "softnum.tta.outcomes": (
            "bootstrap_interval", "Cost", "CostResult", "DesignResult", "EnergyResult", "Factors", "Interaction",
            "Intervals", "measured_variant", "plot_details", "plot_memory", "plot_parallel", "predicted_speedup",
            "ratio_interval", "read_combination", "read_costs", "results_dict", "RESULTS_SCHEMA", "Run",
            "share_interval", "Spread",
        ),
        "softnum.tta.parallelism": (
            "check_memory", "Checkpoints", "checkpoints", "Parallelism", "plan_step", "read_system",
            "step_memory", "step_time", "StepMemory", "StepPlan", "StepTime", "System", "system", "systems", "Tier",
        ),
        "softnum.tta.programs": ("export_program", "PROGRAM_FORMATS", "ProgramFormat"),
        "softnum.tta.quantities": ("bandwidth", "bit_rate", "byte_size", "duration", "flop_rate", "frequency"),
        "softnum.tta.simulators": (
            "ASSUMPTIONS", "AstraSystem", "create_environment", "GemmCost", "GemmCycles", "Machine", "machine_for",
            "MissingReport", "NetworkDimension", "NOT_SIMULATED", "read_compute_report", "read_requests",
            "read_scalesim", "read_zigzag", "run_astrasim", "SCALESIM_VERSION", "Simulations", "write_astrasim",
            "write_inputs", "write_requests", "ZIGZAG_ASSUMPTIONS", "zigzag_timings", "zigzag_variants",
            "ZIGZAG_VERSION",
        ),
        "softnum.tta.study": ("outcome_rules",),
        "softnum.tta.timings": ("mean_interval", "mser5", "TimingFormat"),
        "softnum.tta.traces": (
            "check_ranks", "data_parallel_traces", "load_chakra_schema", "plan_traces", "RankTraces", "read_trace",
            "Trace", "trace_time", "TraceAttribute", "TraceIO", "TraceNode", "workload_of_trace", "write_trace",
            "write_traces",
        ),
        "softnum.tta.workloads": (
            "Energy", "ENERGY_KINDS", "ENERGY_TABLES", "EnergyTable", "equal_area", "Exchange", "exposed_time",
            "gemm_layer_times", "gradient_bytes", "largest_batch", "Memory", "memory_table", "minimum_bandwidth",
            "multiplier_areas", "MultiplierArea", "network_digest", "operation_energy", "OperationEnergy",
            "parallel_sweep", "ParallelTime", "ProductName", "read_energy_table", "read_layer_times",
            "read_product_name", "served_time", "ServedTime", "STAGES", "StoredTensor", "TENSOR_CLASSES", "Transfer",
            "UnitHardware",
        ),
    },
}  # fmt: skip
