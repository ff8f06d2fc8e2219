"""What a process asks of memory: refused by name where the machine has less, and kept while a training runs."""

import os
import subprocess
import sys

import pytest

from softnum.runtime import heap
from softnum.runtime.limits import check_memory


def test_more_than_the_machine_has_is_refused():
    with pytest.raises(
        ValueError, match=r"^this need 1,152,921,504,606,846,976 bytes \(1,073,741,824\.0 GiB\), and th"
    ):
        check_memory(1 << 60, "this", "ask for less")


_FAULTS = """
import resource
import numpy as np
from softnum.runtime import heap

def faults(elements):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(elements, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

size, outside = 48 << 20, faults(48 << 20)
with heap.freed_memory_kept(), heap.freed_memory_kept():
    faults(size)
    assert faults(size) < outside / 4
assert faults(size) > outside / 2
"""


@pytest.mark.skipif(heap._glibc() is None, reason="the C library is not glibc, or its malloc is set up already")
def test_freed_memory_is_kept_and_given_back():
    """Arrays above glibc's threshold of mappings: after the first they need no new pages, in a process of its own,
    where nobody (Dask does) has set up malloc."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
