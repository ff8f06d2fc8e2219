"""What ``softnum parallel --server`` prints: updates one by one, in the order of a training."""

import typer

from softnum.cli.tables import print_table, si, write_rows

__all__ = ["served"]


def served(network: str, timed, counts, rates, exchanges, orders, updates: int, out) -> None:
    """Time updates by a server, print them, and write them.

    Parameters
    ----------
    network : str
    timed : list of (workload, seconds of layers, where they are from)
    counts, rates, exchanges
        As of `softnum.tta.workloads.parallel_sweep`.
    orders : list of str
        As of ``softnum train --server``.
    updates : int
    out : pathlib.Path, optional
    """
    from softnum.tta.quantities import format_seconds
    from softnum.tta.workloads import served_time

    found = [
        (work, exchange, served_time(work, seconds, count, rate, order, exchange, updates))
        for work, seconds, _ in timed
        for exchange in exchanges
        for order in orders
        for count in counts
        for rate in rates
    ]
    for work, _, source in timed:
        for exchange in exchanges:
            for order in dict.fromkeys(time.server for _, _, time in found):
                print_table(
                    f"{network}, {work.design}, sent as {exchange.compress or 'stored'}: {updates} updates, {order}",
                    ["Workers", "Bandwidth", "Alone", "Update", "Speed-up", "Link busy", "Staleness", "Most",
                     "Samples/s"],
                    [
                        (time.workers, si(float(time.bandwidth), "b/s"), format_seconds(float(time.compute)),
                         format_seconds(float(time.seconds)), f"{float(time.speedup):.2f}",
                         f"{float(time.busy / time.total):.0%}", f"{float(time.staleness):.2f}", time.most,
                         f"{float(time.throughput):,.0f}")
                        for own, sent, time in found
                        if own is work and sent is exchange and time.server == order
                    ],
                    [f"{work.design}: times of {source}"],
                )  # fmt: skip
    if out is not None:
        rows = [{"network": work.network, "design": work.design, **time.to_table()} for work, _, time in found]
        write_rows(out, rows, {"served": rows})
        typer.echo(f"Written: {out}")
