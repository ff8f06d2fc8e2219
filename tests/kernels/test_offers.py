"""What softnum asks kernels for: registered when they are imported, and not before they are needed."""

import subprocess
import sys
from importlib import import_module

import pytest

from softnum.kernels.offers import DEVICES
from softnum.runtime import _core
from softnum.runtime.gateway import has_kernel


@pytest.mark.parametrize("module", DEVICES)
def test_modules_have_what_they_offer(module):
    pytest.importorskip("numba")
    for name in DEVICES[module]:
        assert has_kernel(name) and callable(getattr(import_module(module), name))


def test_every_name_is_offered_once():
    names = [name for names in DEVICES.values() for name in names]
    assert len(names) == len(set(names)) and set(_core.OPERATIONS) < set(names)
    assert not has_kernel("nothing") and not has_kernel("scalar")


@pytest.mark.parametrize(
    "work, kernels, numba",
    [
        ("sn.quantize(1.1, 'e5m2'), sn.matmul([[1.0]], [[1.0]], sn.MadUnit('e5m2', operand='e5m2'))", False, False),
        ("gateway.has_kernel('matmul'), gateway.has_kernel('nothing')", True, False),
        ("softnum.kernels.scalar", True, False),
        ("gateway.fingerprint(len)", True, True),
    ],
)
def test_what_is_imported_by_need(work, kernels, numba):
    pytest.importorskip("numba")
    script = "import sys, softnum, softnum as sn\nfrom softnum.runtime import gateway\n"
    script += "import softnum.kernels\n" if work.startswith("softnum.kernels") else ""
    done = subprocess.run(
        [sys.executable, "-c", f"{script}{work}\nprint('softnum.kernels' in sys.modules, 'numba' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [str(kernels), str(numba)]
