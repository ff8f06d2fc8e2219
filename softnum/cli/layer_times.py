"""How commands take what the layers of an iteration take."""

from dataclasses import replace

from softnum.cli.workloads import devices_of

__all__ = ["timed_works"]


def timed_works(works, device, device_file, efficiency: float, reports, layer_times) -> list:
    """(workload, times of its layers, where they are from): of a roofline, of SCALE-Sim's reports, or the user's own.

    Raises
    ------
    ValueError
        If more than one of them is named, or it does not say what the layers take.
    """
    sources = [
        name for name, given in (("--device", device), ("--reports", reports), ("--layer-times", layer_times)) if given
    ]
    if len(sources) > 1:
        raise ValueError(f"{' and '.join(sources)} both say what the layers take; leave one of them out")
    if efficiency != 1 and (reports is not None or layer_times is not None):
        raise ValueError(f"--efficiency is of the roofline; leave it out with {sources[0]}")
    if layer_times is not None:
        from softnum.tta import read_layer_times

        seconds = read_layer_times(layer_times)
        return [(work, seconds, str(layer_times)) for work, _ in works]
    if reports is not None:
        from softnum.tta import DesignPoint, gemm_layer_times, load_reports, scalesim_timings

        found, stores = [], [load_reports(reports)]
        for work, hardware in works:
            if hardware is None:
                raise ValueError(f"design {work.design!r} states no [hardware], which SCALE-Sim's reports are of")
            time = scalesim_timings([DesignPoint(work.design, hardware, _counted(work))], stores)[work.design]
            found.append((work, gemm_layer_times(time), time.source))
        return found
    from softnum.tta import roofline

    found = [roofline(work, where, efficiency) for work, where in devices_of(works, device, device_file)]
    names = len(device.split(",")) if device else 1
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
