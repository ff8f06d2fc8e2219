"""How commands take what the layers of an iteration take."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.options import DeviceFile
from softnum.cli.workloads import devices_of

__all__ = ["LayerTimeOptions"]


@dataclass(frozen=True)
class LayerTimeOptions:
    """Options of a command, in the order of its help."""

    device: Annotated[
        str | None, typer.Option(help="Times of the layers by roofline on this device.  [default: the design's array]")
    ] = None
    device_file: DeviceFile = None
    efficiency: Annotated[float, typer.Option(help="Fraction of the roofline that is reached, up to 1.")] = 1.0
    reports: Annotated[
        Path | None, typer.Option(help="Folder of SCALE-Sim reports with the times, like OUT/scalesim of softnum tta.")
    ] = None
    layer_times: Annotated[
        Path | None, typer.Option(help="CSV with the times: layer,forward,backward_data,backward_weight[,update].")
    ] = None

    def devices_of(self, works) -> list:
        """(workload, device), as `softnum.cli.workloads.devices_of` has them."""
        return devices_of(works, self.device, self.device_file)

    def timed(self, works) -> list:
        """(workload, times of its layers, where they are from): of a roofline, SCALE-Sim's reports, or the user's.

        Raises
        ------
        ValueError
            If more than one of them is named, or it does not say what the layers take.
        """
        given = {"--device": self.device, "--reports": self.reports, "--layer-times": self.layer_times}
        sources = [name for name, value in given.items() if value]
        if len(sources) > 1:
            raise ValueError(f"{' and '.join(sources)} both state the times of the layers; leave one of them out")
        if self.efficiency != 1 and (self.reports is not None or self.layer_times is not None):
            raise ValueError(f"--efficiency scales the roofline and has no effect with {sources[0]}; leave it out")
        if self.layer_times is not None:
            from softnum.tta.workloads import read_layer_times

            seconds = read_layer_times(self.layer_times)
            return [(work, seconds, str(self.layer_times)) for work, _ in works]
        if self.reports is not None:
            from softnum.tta import DesignPoint, load_reports, scalesim_timings
            from softnum.tta.workloads import gemm_layer_times

            found, stores = [], [load_reports(self.reports)]
            for work, hardware in works:
                if hardware is None:
                    raise ValueError(
                        f"design {work.design!r} states no [hardware], which SCALE-Sim's reports need; add the table "
                        "to the design"
                    )
                time = scalesim_timings([DesignPoint(work.design, hardware, _counted(work))], stores)[work.design]
                found.append((work, gemm_layer_times(time), time.source))
            return found
        from softnum.tta import roofline

        found = [roofline(work, where, self.efficiency) for work, where in self.devices_of(works)]
        names = len(self.device.split(",")) if self.device else 1
        return [
            (work, roof.layer_times, roof.time.source)
            for work, roof in zip((work for work, _ in works for _ in range(names)), found, strict=True)
        ]  # fmt: skip


def _counted(work):
    """The products of a workload, equal ones once with a count: as a design point lists them."""
    counts: dict = {}
    for gemm in work.gemms:
        key = replace(gemm, count=1)
        counts[key] = counts.get(key, 0) + gemm.count
    return tuple(replace(gemm, count=count) for gemm, count in counts.items())
