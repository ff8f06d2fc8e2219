"""What a study comes to: iterations and times combined, intervals, results, tables and pictures."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.tta.outcomes.cost import Cost, read_costs
    from softnum.tta.outcomes.interaction import Factors, Interaction, predicted_speedup, read_combination
    from softnum.tta.outcomes.intervals import bootstrap_interval, ratio_interval, share_interval
    from softnum.tta.outcomes.measured import measured_variant
    from softnum.tta.outcomes.outcome import CostResult, DesignResult, EnergyResult, Intervals, Run, Spread
    from softnum.tta.outcomes.report import plot_details
    from softnum.tta.outcomes.resource_plots import plot_memory, plot_parallel
    from softnum.tta.outcomes.results import RESULTS_SCHEMA, results_dict
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.tta.outcomes.cost": ("Cost", "read_costs"),
            "softnum.tta.outcomes.interaction": ("Factors", "Interaction", "predicted_speedup", "read_combination"),
            "softnum.tta.outcomes.intervals": ("bootstrap_interval", "ratio_interval", "share_interval"),
            "softnum.tta.outcomes.measured": ("measured_variant",),
            "softnum.tta.outcomes.outcome": (
                "CostResult",
                "DesignResult",
                "EnergyResult",
                "Intervals",
                "Run",
                "Spread",
            ),
            "softnum.tta.outcomes.report": ("plot_details",),
            "softnum.tta.outcomes.resource_plots": ("plot_memory", "plot_parallel"),
            "softnum.tta.outcomes.results": ("RESULTS_SCHEMA", "results_dict"),
        },
    )

__all__ = [
    "Cost",
    "CostResult",
    "DesignResult",
    "EnergyResult",
    "Factors",
    "Interaction",
    "Intervals",
    "RESULTS_SCHEMA",
    "Run",
    "Spread",
    "bootstrap_interval",
    "measured_variant",
    "plot_details",
    "plot_memory",
    "plot_parallel",
    "predicted_speedup",
    "ratio_interval",
    "read_combination",
    "read_costs",
    "results_dict",
    "share_interval",
]
