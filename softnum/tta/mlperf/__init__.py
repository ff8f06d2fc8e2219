"""MLPerf training logs, beyond their lines (`softnum.tta.mllog`): evaluations, progress, what benchmarks ask for."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.tta.mlperf.benchmarks import MLPerfRun, MLPerfScore, MLPerfTarget, mlperf_score
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.tta.mlperf.benchmarks": ("MLPerfRun", "MLPerfScore", "MLPerfTarget", "mlperf_score"),
        },
    )

__all__ = [
    "MLPerfRun",
    "MLPerfScore",
    "MLPerfTarget",
    "mlperf_score",
]
