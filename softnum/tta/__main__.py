"""``python -m softnum.tta remake``: simulate again what the shipped SCALE-Sim reports hold, or a study of your own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code (0 done, 2 unusable input)."""
    from softnum.tta.simulators import environment, reports, simulation
    from softnum.tta.simulators.scalesim import DATAFLOWS

    parser = argparse.ArgumentParser(prog="python -m softnum.tta", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    remake = verbs.add_parser(
        "remake", help="run a simulator, in a virtual environment of its own, and write its reports"
    )
    remake.add_argument(
        "--requests",
        metavar="FILE",
        help="JSON with designs and baseline (default: the shipped manifest, and then every GEMM is simulated again; "
        "else earlier results are taken)",
    )
    remake.add_argument(
        "--out", metavar="FOLDER", help="where the reports go (default: the folder of the shipped ones)"
    )
    remake.add_argument("--simulator", choices=list(environment.TOOLS), default="scalesim")
    remake.add_argument("--dataflow", choices=list(DATAFLOWS), default="os")
    remake.add_argument("--jobs", type=int, metavar="N", help="processes (default: one for each core)")
    remake.add_argument(
        "--venv", metavar="FOLDER", help=f"the simulator's environment ({environment.default_environment()})"
    )
    options = parser.parse_args(arguments)
    shipped = Path(__file__).parent / "reports"
    try:
        if options.out is None and (options.simulator, options.dataflow) != ("scalesim", "os"):
            raise ValueError(
                "the shipped reports are of SCALE-Sim with the dataflow os; name another folder with --out"
            )
        points, baseline = reports.read_requests(options.requests or shipped / "manifest.json")
        manifest = simulation.simulate(
            points, options.out or shipped, baseline=baseline, dataflow=options.dataflow, simulator=options.simulator,
            environment=options.venv, reuse=options.requests is not None, jobs=options.jobs, progress=print,
        )  # fmt: skip
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {manifest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
