"""Times where there is no simulator: analytic models, labelled as such."""

from softnum.tta.estimates.device_files import Device, Money, Peak, device, devices
from softnum.tta.estimates.gemm_tables import FARTHEST, GemmEstimate, GemmTable, GemmTime, measure_gemms
from softnum.tta.estimates.merit import figure_of_merit, read_rates, units_per_day
from softnum.tta.estimates.method import RollUp, matrix_share, roll_up
from softnum.tta.estimates.picture import plot_roofline
from softnum.tta.estimates.rooflines import (
    Inference,
    Roofline,
    RooflineRow,
    Utilisation,
    inference,
    roofline,
    utilisation,
)

__all__ = [
    "FARTHEST",
    "Device",
    "GemmEstimate",
    "GemmTable",
    "GemmTime",
    "Inference",
    "Money",
    "Peak",
    "RollUp",
    "Roofline",
    "RooflineRow",
    "Utilisation",
    "device",
    "devices",
    "figure_of_merit",
    "inference",
    "matrix_share",
    "measure_gemms",
    "plot_roofline",
    "read_rates",
    "roll_up",
    "roofline",
    "units_per_day",
    "utilisation",
]
