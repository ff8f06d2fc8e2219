"""How a command takes a network of ranks for ASTRA-sim: links in each of its dimensions."""

from dataclasses import dataclass
from typing import Annotated

import typer

from softnum.cli.tables import whole_numbers, words

__all__ = ["LinkOptions"]


@dataclass(frozen=True)
class LinkOptions:
    """Options of a command, in the order of its help."""

    bandwidth: Annotated[
        str | None,
        typer.Option(help=('Bandwidth of a link in each dimension, in bits per second: "3600 Gb/s,400 Gb/s".')),
    ] = None
    latency: Annotated[
        str | None, typer.Option(help='Latency of a link in each dimension: "500 ns,2 us".  [default: none]')
    ] = None
    dimensions: Annotated[
        str | None, typer.Option(help="Ranks in each dimension, the innermost first: 8,16.  [default: all in one]")
    ] = None
    topology: Annotated[str, typer.Option(help="Topology of each dimension: Ring, FullyConnected or Switch.")] = "Ring"
    algorithm: Annotated[
        str,
        typer.Option(
            help=("Algorithm of collectives in each dimension: ring, direct, halvingDoubling or doubleBinaryTree.")
        ),
    ] = "ring"
    split: Annotated[
        int, typer.Option(help="Parts into which each collective is split, to pipeline its dimensions.")
    ] = 1

    def system(self, ranks: int, peak: float | None = None, memory_bandwidth: float | None = None):
        """The system that they state, or None; with a rank's FLOP/s and bytes/s where durations are told from them."""
        from softnum.tta.quantities import bit_rate, duration
        from softnum.tta.simulators import AstraSystem, NetworkDimension

        if self.bandwidth is None:
            given = {"latency": self.latency, "dimensions": self.dimensions, "split": self.split != 1}
            for option in given:
                if given[option]:
                    raise ValueError(f"--{option} describes links; add their --bandwidth, or leave it out")
            return None
        sizes = [ranks] if self.dimensions is None else whole_numbers(self.dimensions, "--dimensions")
        columns = {
            "--bandwidth": [bit_rate(part, "--bandwidth") for part in words(self.bandwidth)],
            "--latency": [duration(part, "--latency") for part in words(self.latency)] if self.latency else [0],
            "--topology": words(self.topology),
            "--algorithm": words(self.algorithm),
        }
        for option, values in columns.items():
            if len(values) == 1:
                columns[option] = values * len(sizes)
            elif len(values) != len(sizes):
                raise ValueError(
                    f"{option} has {len(values)} values for {len(sizes)} dimensions; give one value, or one for each "
                    "dimension"
                )
        order = ("--bandwidth", "--latency", "--algorithm")
        rows = zip(columns["--topology"], sizes, *(columns[option] for option in order), strict=True)
        return AstraSystem([NetworkDimension(*row) for row in rows], self.split, 1, peak, memory_bandwidth)
