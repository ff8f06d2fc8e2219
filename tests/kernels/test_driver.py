"""The host's side of CUDA arrays as it runs on a GPU, on a stand-in for CUDA's driver: the simulator has another."""

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.kernels.dry_run import build, headers

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or not which("cc"), reason="the stand-in is built by cc, for Linux"),
    pytest.mark.skipif(headers() is None, reason="cuda.h is not installed"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Runs Python on the stand-in."""
    pytest.importorskip("cuda.core", reason="numba-cuda needs CUDA's bindings but in its simulator")
    environment = build(tmp_path_factory.mktemp("driver"))

    def run(*arguments):
        command = [sys.executable, "-W", "error", "-P", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return run


@pytest.mark.slow
def test_the_hosts_side(python):
    done = python(Path(__file__).with_name("host_side.py"))
    if "is not installed" in done.stdout:
        pytest.skip(done.stdout)
    assert (done.returncode, done.stdout) == (0, "the host's side: ok\n"), done.stderr


def test_the_host_cannot_read_what_lies_on_the_device(python):
    script = "import ctypes; import numpy as np; from numba import cuda; x = cuda.to_device(np.zeros(4));"
    script += "print(x.copy_to_host()[0], flush=True); print(ctypes.string_at(x.device_ctypes_pointer.value, 8))"
    done = python("-c", script)
    assert done.returncode < 0 and done.stdout == "0.0\n", done.stderr
