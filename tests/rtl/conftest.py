"""The simulator libraries, built once a process."""

import ctypes
import shutil
import subprocess

import pytest

from softnum.vectors import build_simulator_libraries
from tests.support.dpi_calls import LOOPS, Dpi


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder that `softnum rtl build` makes."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    folder = tmp_path_factory.mktemp("dpi")
    build_simulator_libraries(folder, compiler="cc -O0 -Wall -Wextra -Wshadow -Werror")
    return folder


@pytest.fixture(scope="session")
def library(built):
    """The library by ctypes."""
    lib = ctypes.CDLL(str(built / "libsoftnum_dpi.so"))
    lib.softnum_dpi_message.restype = ctypes.c_char_p
    return lib


@pytest.fixture(scope="session")
def dpi(library):
    return Dpi(library)


@pytest.fixture(scope="session")
def loops(built, dpi):
    """dpi, whose `each` calls an operation for all elements of arrays."""
    (built / "loops.c").write_text(LOOPS)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", built / "loops.so", built / "loops.c"], check=True)
    dpi.loops = ctypes.CDLL(str(built / "loops.so"))
    return dpi
