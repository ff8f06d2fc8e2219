"""Names that tie a kernel to a matrix product of a network: its shape, and a digest of all products of an iteration."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from softnum.tta.workloads.hardware import Gemm
from softnum.tta.workloads.operations import Workload

__all__ = ["ProductName", "network_digest", "read_product_name"]

_NAME = re.compile(r"gemm_m([1-9]\d{0,18})_n([1-9]\d{0,18})_k([1-9]\d{0,18})_([0-9a-f]{8})(?![0-9a-f])", re.ASCII)


@dataclass(frozen=True)
class ProductName:
    """The name of a kernel that computes a matrix product of a network.

    Parameters
    ----------
    m, n, k : int
        Of (M, K) @ (K, N).
    digest : str
        Of the network, as `network_digest` gives it.

    Examples
    --------
    >>> str(ProductName(64, 10, 128, "0123abcd"))
    'gemm_m64_n10_k128_0123abcd'
    """

    m: int
    n: int
    k: int
    digest: str

    def __str__(self) -> str:
        return f"gemm_m{self.m}_n{self.n}_k{self.k}_{self.digest}"


def read_product_name(text: str) -> ProductName | None:
    """Find a product's name in that of a kernel, mangled or not; None where there is none.

    Examples
    --------
    >>> read_product_name("_Z26gemm_m64_n10_k128_0123abcdPKfS0_Pf").k
    128
    >>> read_product_name("ampere_sgemm_128x64_nn")
    """
    found = _NAME.search(text)
    return None if found is None else ProductName(int(found[1]), int(found[2]), int(found[3]), found[4])


def network_digest(workload: Workload) -> str:
    """Digest of the matrix products of an iteration: batch, and each product's layer, pass, sizes and count.

    Neither the network's name nor the formats of a design are in it: designs of one network share it.

    Parameters
    ----------
    workload : Workload

    Returns
    -------
    str
        The first eight hexadecimal digits of a SHA-256.

    Raises
    ------
    ValueError
        If the workload has no matrix products.

    Examples
    --------
    >>> from softnum.tta import load_reports, workload_of_gemms
    >>> points = load_reports().designs
    >>> [network_digest(workload_of_gemms(points[name], 32)) for name in ("a-float32", "c-wang-fp8")]
    ['60c3ec13', '60c3ec13']
    """
    if not workload.gemms:
        raise ValueError(
            f"workload {workload.network!r} of design {workload.design!r} has no matrix products; name a network with "
            "some"
        )
    facts = [workload.batch, [_facts(gemm) for gemm in workload.gemms]]
    return hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()[:8]


def _facts(gemm: Gemm) -> list[Any]:
    return [gemm.layer, gemm.phase, *gemm.shape, gemm.count]
