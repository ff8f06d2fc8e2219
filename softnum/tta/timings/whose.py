"""Whose log it is: kernels that are called by their products, as `softnum.tta.programs.export_program` calls them.

Such names have a product's sizes and a digest of its network. They are compared with the workload that the reader was
given; one that differs is an error. Where there are no such names, nothing shows whose log it is, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from softnum.tta.timings.series import Options
from softnum.tta.workloads.operations import Workload
from softnum.tta.workloads.products import ProductName, network_digest, read_product_name

__all__ = ["NO_NAMES", "compared", "named_iterations", "whose_log"]

NO_NAMES = (
    "warning: nothing in the file shows of which network it is; softnum workloads exports programs whose kernels are "
    "called by their products"
)


def named_iterations(where: str, kernels: Sequence[tuple[str, int]], options: Options) -> tuple[int, int] | None:
    """Compare kernels' names with the products of the workload.

    Parameters
    ----------
    where : str
        The file.
    kernels : sequence of (str, int)
        The kernel of each launch, and the line that names it.
    options : Options
        With the workload, or None.

    Returns
    -------
    (int, int) or None
        How many iterations the launches are, and how many launches an iteration has; 0 launches where others than
        products are among them, so that names alone do not tell iterations apart. None where there is no workload, or
        no name of a product.

    Raises
    ------
    ValueError
        If the names are of two networks, or of another than the workload's; or the launches are not the workload's
        products, in their order, a whole number of times.

    Examples
    --------
    >>> named_iterations("a.log", [("gemm_m8_n4_k2_00000000", 3)], Options())
    """
    named = [(at, found) for at, (name, _) in enumerate(kernels) if (found := read_product_name(name)) is not None]
    if not named:
        return None
    digest = _one_digest(where, kernels, named)
    work = options.workload
    if work is None:
        return None
    own = network_digest(work)
    if digest != own:
        at, name = named[0]
        raise ValueError(
            f"{where}, line {kernels[at][1]}: kernel {str(name)!r} is of the network with digest {digest}, where "
            f"{_told(work)} has digest {own}; name the workload that the program was exported from, or export it again "
            "with softnum workloads"
        )
    expected = [gemm for gemm in work.gemms for _ in range(gemm.count)]
    for index, (at, name) in enumerate(named):
        gemm = expected[index % len(expected)]
        if (name.m, name.n, name.k) != gemm.shape:
            raise ValueError(
                f"{where}, line {kernels[at][1]}: kernel {str(name)!r} is product {index % len(expected) + 1} of "
                f"iteration {index // len(expected) + 1}, where {_told(work)} has {gemm.layer} {gemm.phase}, "
                f"M {gemm.m}, N {gemm.n}, K {gemm.k}; keep the whole log of the program as it was exported"
            )
    times, rest = divmod(len(named), len(expected))
    pure = len(named) == len(kernels)
    if rest and not (times and pure and options.allow_unfinished):
        raise ValueError(
            f"{where}, line {kernels[named[-1][0]][1]}: after {times} whole iterations, {rest} of the {len(expected)} "
            f"products of {_told(work)}; let the program run to its end"
            + (", or take the whole ones with --allow-unfinished" if times and pure else "")
        )
    return times, len(expected) if pure else 0


def whose_log(where: str, kernels: Sequence[tuple[str, int]], options: Options) -> str:
    """What the names of kernels show of the network, in words; a warning where that is not enough.

    Raises
    ------
    ValueError
        As `named_iterations`.

    Examples
    --------
    >>> whose_log("a.log", [("gemm_m8_n4_k2_00000000", 3)], Options())[:64]
    'warning: the kernels are of the network with digest 00000000, an'
    """
    named_iterations(where, kernels, options)
    named = [name for text, _ in kernels if (name := read_product_name(text)) is not None]
    if not named:
        return NO_NAMES
    others = len(kernels) - len(named)
    beside = f"; {others} launches of other kernels are beside them" if others else ""
    if options.workload is None:
        return (
            f"warning: the kernels are of the network with digest {named[0].digest}, and no workload was given to "
            f"compare it with{beside}; give the one that was exported: --workload workloads.json"
        )
    return f"kernels are those of {_told(options.workload)}, digest {named[0].digest}, product by product{beside}"


def compared(where: str, kernels: Sequence[tuple[str, int]], options: Options) -> dict[str, str]:
    """`whose_log` as a detail of a profile of hardware; none where neither names nor a workload are given.

    Raises
    ------
    ValueError
        As `named_iterations`.

    Examples
    --------
    >>> compared("a.csv", [("sgemm", 3)], Options())
    {}
    """
    said = whose_log(where, kernels, options)
    return {} if said == NO_NAMES and options.workload is None else {"network": said}


def _told(work: Workload) -> str:
    return f"{work.network or 'the network'}, batch {work.batch}"


def _one_digest(where: str, kernels: Sequence[tuple[str, int]], named: Sequence[tuple[int, ProductName]]) -> str:
    first, name = named[0]
    for at, other in named:
        if other.digest != name.digest:
            raise ValueError(
                f"{where}, line {kernels[at][1]}: kernel {str(other)!r} is of another network than {str(name)!r}, line "
                f"{kernels[first][1]}; expected the log of one program; split it"
            )
    return name.digest
