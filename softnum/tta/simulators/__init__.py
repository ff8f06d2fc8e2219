"""Simulators that softnum drives, each in an environment of its own."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.tta.simulators.astrasim import AstraSystem, NetworkDimension, run_astrasim, write_astrasim
    from softnum.tta.simulators.environment import create_environment
    from softnum.tta.simulators.reports import MissingReport, Simulations, read_requests, write_requests
    from softnum.tta.simulators.scalesim import ASSUMPTIONS, NOT_SIMULATED, Machine, machine_for, write_inputs
    from softnum.tta.simulators.scalesim_report import GemmCycles, read_compute_report, read_scalesim
    from softnum.tta.simulators.simulation import SCALESIM_VERSION, ZIGZAG_VERSION, zigzag_timings
    from softnum.tta.simulators.variants import zigzag_variants
    from softnum.tta.simulators.zigzag import ZIGZAG_ASSUMPTIONS
    from softnum.tta.simulators.zigzag_report import GemmCost, read_zigzag
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.tta.simulators.astrasim": ("AstraSystem", "NetworkDimension", "run_astrasim", "write_astrasim"),
            "softnum.tta.simulators.environment": ("create_environment",),
            "softnum.tta.simulators.reports": ("MissingReport", "Simulations", "read_requests", "write_requests"),
            "softnum.tta.simulators.scalesim": (
                "ASSUMPTIONS",
                "Machine",
                "NOT_SIMULATED",
                "machine_for",
                "write_inputs",
            ),
            "softnum.tta.simulators.scalesim_report": ("GemmCycles", "read_compute_report", "read_scalesim"),
            "softnum.tta.simulators.simulation": ("SCALESIM_VERSION", "ZIGZAG_VERSION", "zigzag_timings"),
            "softnum.tta.simulators.variants": ("zigzag_variants",),
            "softnum.tta.simulators.zigzag": ("ZIGZAG_ASSUMPTIONS",),
            "softnum.tta.simulators.zigzag_report": ("GemmCost", "read_zigzag"),
        },
    )

__all__ = [
    "ASSUMPTIONS",
    "AstraSystem",
    "GemmCost",
    "GemmCycles",
    "Machine",
    "MissingReport",
    "NOT_SIMULATED",
    "NetworkDimension",
    "SCALESIM_VERSION",
    "Simulations",
    "ZIGZAG_ASSUMPTIONS",
    "ZIGZAG_VERSION",
    "create_environment",
    "machine_for",
    "read_compute_report",
    "read_requests",
    "read_scalesim",
    "read_zigzag",
    "run_astrasim",
    "write_astrasim",
    "write_inputs",
    "write_requests",
    "zigzag_timings",
    "zigzag_variants",
]
