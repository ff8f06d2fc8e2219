"""Python in a process where Numba compiles for a GPU."""

import os
import subprocess
import sys

import pytest


def compiled(*arguments, **options):
    environ = {**os.environ, "NUMBA_ENABLE_CUDASIM": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments], env=environ, capture_output=True, text=True, **options
    )
    if done.returncode == 2 and "pip install" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    return done
