"""First steps of the networks that accelerator papers train, at full size, in PyTorch and in designs' arithmetic.

``python -m benchmarks.full_size`` trains each network for two steps on a small synthetic batch, by PyTorch alone, in
binary32, in FP8 with the sums of Hopper's tensor cores, and in MXFP8, each in a process of its own, and prints what it
took. Rows that are in the file (``--out``) already are not run again. Two cores carry none of these to an accuracy.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.full_size.networks import NETWORKS

DESIGNS = {
    "PyTorch": None,
    "binary32": "a-float32",
    "Hopper": str(Path(__file__).parents[1] / "designs" / "hopper.toml"),
    "MXFP8": "i-mxfp8",
}


def run(network: str, arithmetic: str, steps: int) -> dict:
    """The first steps of a network in an arithmetic, in this process."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    chosen = NETWORKS[network]
    model = chosen.model()
    batch = chosen.draw(chosen.batch)
    row = {"network": network, "arithmetic": arithmetic, "parameters": sum(p.numel() for p in model.parameters())}
    if DESIGNS[arithmetic] is not None:
        import softnum.torch as st

        st.convert(model, DESIGNS[arithmetic], elementwise="torch", quiet=True)
        scaler = st.GradScaler(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses, times = [], []
    for step in range(steps):
        torch.manual_seed(step)  # of what networks draw themselves, such as the boxes that Mask R-CNN looks at
        started = time.process_time()
        optimizer.zero_grad()
        found = chosen.loss(model, batch)
        (found if DESIGNS[arithmetic] is None else scaler.scale(found)).backward()
        optimizer.step()
        times.append(time.process_time() - started)
        losses.append(found.item())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return row | {"losses": losses, "seconds": min(times), "peak_gib": peak}


def main() -> None:
    """Run what is not in the file yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.full_size", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("full-size.jsonl"), help="rows, one for each run")
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NETWORK")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--row", nargs=2, metavar=("NETWORK", "ARITHMETIC"), help="run one in this process")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(run(*options.row, options.steps)))
        return
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    for network in options.only:
        for arithmetic in DESIGNS:
            if any((row["network"], row["arithmetic"]) == (network, arithmetic) for row in rows):
                continue
            command = [sys.executable, "-m", "benchmarks.full_size", "--steps", str(options.steps), "--row"]
            done = subprocess.run([*command, network, arithmetic], capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{network}, {arithmetic}:\n{done.stderr[-3000:]}")
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(network, arithmetic, f"{rows[-1]['seconds']:.1f} s", file=sys.stderr)
    table = Table("Network", "Parameters", "Arithmetic", "s/step", "x PyTorch", "Peak GiB", "Losses")
    plain = {row["network"]: row["seconds"] for row in rows if row["arithmetic"] == "PyTorch"}
    for row in rows:
        table.add_row(
            row["network"], f"{row['parameters'] / 1e6:.1f} M", row["arithmetic"], f"{row['seconds']:.2f}",
            f"{row['seconds'] / plain[row['network']]:.1f}", f"{row['peak_gib']:.1f}",
            ", ".join(f"{loss:.4f}" for loss in row["losses"]),
        )  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
