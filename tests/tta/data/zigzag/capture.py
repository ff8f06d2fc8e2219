"""Makes the files of this folder again: python tests/tta/data/zigzag/capture.py (installs ZigZag on first use)."""

import subprocess
import tempfile
from pathlib import Path

from softnum.tta import DesignPoint, simulate
from softnum.tta.simulators import create_environment
from softnum.tta.simulators.zigzag import zigzag_files, zigzag_machine

HERE = Path(__file__).parent
TABLE = {
    "name": "fp16",
    "hardware": {
        "array": [32, 32],
        "sram_bytes": {"ifmap": 32768, "filter": 32768, "ofmap": 32768},
        "bandwidth": "16 GB/s",
        "clock": "1 GHz",
    },
    "gemms": [
        {"layer": "fc1", "pass": "forward", "M": 32, "N": 128, "K": 64, "bits": 16, "formats": ["binary16"] * 2},
        {"layer": "odd", "pass": "forward", "M": 33, "N": 40, "K": 27, "count": 3, "bits": 16, "formats": ["binary16"]},
        {"layer": "one", "pass": "forward", "M": 1, "N": 1, "K": 9, "bits": 16, "formats": ["binary16"]},
    ],
}

# what a user of ZigZag's own interface gets: overall_simple.json of two products
_API = """\
import logging
logging.disable(logging.CRITICAL)
from zigzag.api import get_hardware_performance_zigzag
get_hardware_performance_zigzag("workload.yaml", "accelerator.yaml", "mapping.yaml", opt="latency", dump_folder="out",
                                pickle_filename="out/list.pickle", loma_show_progress_bar=False)
"""


def main() -> None:
    """Capture everything."""
    point = DesignPoint.from_table(TABLE)
    with tempfile.TemporaryDirectory() as cache:
        simulate([point], HERE / "reports", baseline="fp16", simulator="zigzag", cache=cache, reuse=False)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zigzag_files(zigzag_machine(point.hardware, point.gemms[0]), (32, 128, 64)).items():
            Path(folder, name).write_text(text, encoding="utf-8")
        subprocess.run([create_environment(tool="zigzag"), "-I", "-c", _API], cwd=folder, check=True)
        text = Path(folder, "out", "overall_simple.json").read_text(encoding="utf-8")
    (HERE / "overall_simple.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
