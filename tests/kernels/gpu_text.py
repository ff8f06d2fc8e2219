"""A plugin of pytest: the simulator's kernels compute with the GPU's branch of the C text.

``pytest -p gpu_text`` with this folder on PYTHONPATH. Usually the simulator runs the CPU's branch of what asks for
__CUDACC_RTC__ (csrc/softnum/word/machine.h above all); here gpu_text.h stands in for the intrinsics of the other.
"""

import ctypes
from pathlib import Path
from types import SimpleNamespace

from softnum.formats.custom.compiler import compile_c, preprocess

compiled = []  # libraries
FLAGS = ("-O1", "-frounding-math", "-fsanitize=alignment,shift,bounds", "-fsanitize-undefined-trap-on-error")


def pytest_collection_finish():
    """When all tests are imported, the simulator is chosen."""
    from softnum.kernels.device.runtime import _cuda

    assert _cuda.SIMULATOR
    header = Path(__file__).with_suffix(".h").read_text()

    def on_host(library):
        compiled.append(library)
        text = preprocess(header + library.source, name="softnum.cu", what="softnum.kernels")
        shared = ctypes.CDLL(str(compile_c(text.replace('extern "C"', "extern"), cflags=FLAGS, what="softnum.kernels")))
        return SimpleNamespace(
            **{entry.name: _cuda._called(getattr(shared, library.symbol(entry)), entry) for entry in library.entries}
        )

    _cuda._on_host = on_host
    _cuda.bind.cache_clear()


def pytest_terminal_summary(terminalreporter):
    """Say how many, for who must know that there were some."""
    terminalreporter.write_line(f"{len(compiled)} libraries of the GPU's text")
