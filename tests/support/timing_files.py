"""The recorded timing files of tests/tta/data."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "tta" / "data"
#: file, format, and what has to be said to read it
GOOD = [
    ("gpgpusim/two-iterations.log", "gpgpusim", {}),
    ("gpgpusim/accel-sim.log", "gpgpusim", {}),
    ("gem5/old-names.txt", "gem5", {}),
    ("gem5/reset.txt", "gem5", {}),
    ("gem5/cumulative.txt", "gem5", {}),
    ("nsys/nvtx_pushpop_trace.csv", "nsys", {"marker": "step_"}),
    ("nsys/nvtx_sum.csv", "nsys", {"marker": "step"}),
    ("nsys/cuda_gpu_trace.csv", "nsys", {}),
    ("nsys/gpukernsum.csv", "nsys", {"iterations": 3}),
    ("ncu/metrics.csv", "ncu", {}),
    ("ncu/raw.csv", "ncu", {}),
    ("kineto/trace.json", "chrome-trace", {}),
    ("viztracer/trace.json", "chrome-trace", {"marker": "^iteration"}),
    ("tensorflow/merged.json", "tensorflow", {"iterations": 3}),
    ("mlperf-logging/run.log", "mllog", {}),
    ("maestro/network.csv", "maestro", {"clock": "1 GHz"}),
    ("astrasim/mlp-4ranks.log", "astrasim", {}),
    ("timeloop/layer.stats.txt", "timeloop", {"clock": "1 GHz"}),
    ("timeloop/layer.map+stats.xml", "timeloop", {"clock": "1 GHz"}),
]
