"""Times where there is no simulator: analytic models, labelled as such."""

from softnum.tta.estimates.device_files import Device, Money, Peak, device, devices
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
    "Device",
    "Inference",
    "Money",
    "Peak",
    "Roofline",
    "RooflineRow",
    "Utilisation",
    "device",
    "devices",
    "inference",
    "roofline",
    "utilisation",
]
