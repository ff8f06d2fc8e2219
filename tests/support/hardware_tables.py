"""The hardware that tests of simulators share: an array of 32 x 32 cells at 1 GHz with three SRAMs of 64 KiB."""

from softnum.tta import Hardware

__all__ = ["HARDWARE", "TABLE"]

TABLE = {
    "array": [32, 32],
    "sram_bytes": {"ifmap": 65536, "filter": 65536, "ofmap": 65536},
    "bandwidth": "16 GB/s",
    "clock": "1 GHz",
}
HARDWARE = Hardware.from_table(TABLE)
