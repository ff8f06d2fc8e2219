"""Build multiplier.v with Icarus Verilog and run its cocotb bench: ``python run.py [BUG]``. Exit code 1: one failed."""

import sys
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent


def run(bug: int, folder: Path) -> tuple[int, int]:
    """(number of tests, of failed ones); the bench's files land in the folder."""
    timescale = ("1ns", "1ps")
    runner = get_runner("icarus")
    runner.build(
        sources=[HERE / "multiplier.v"], hdl_toplevel="multiplier", parameters={"BUG": bug}, timescale=timescale,
        build_dir=folder, always=True,
    )  # fmt: skip
    try:
        results = runner.test(
            hdl_toplevel="multiplier", test_module="bench_multiplier", test_dir=folder, build_dir=folder,
            timescale=timescale, extra_env={"PYTHONPATH": str(HERE)},
        )  # fmt: skip
    except SystemExit as stopped:
        raise RuntimeError("the simulation did not end; its output says why") from stopped
    return get_results(results)


if __name__ == "__main__":
    tests, failed = run(int(sys.argv[1]) if len(sys.argv) > 1 else 0, Path("build"))
    print(f"{tests} tests, {failed} failed")
    sys.exit(failed > 0)
