"""The GPU's tests and figures without a GPU: what the host does for them, on a stand-in for CUDA's driver (driver.c).

    python tests/kernels/dry_run.py [OPTION...]            # all tests that need a GPU, with options of pytest
    python tests/kernels/dry_run.py -m pytest -m gpu ...   # some of them
    python tests/kernels/dry_run.py -m benchmarks.bench_gpu

Kernels are compiled, linked and launched, and none runs. So a comparison of values passes if types and shapes agree,
and other assertions that fail are counted apart: what no kernel has computed can be wrong. All else that goes wrong
would do so on a GPU. It ends with what was compiled, and for how long: most of the time that a GPU's tests take.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parent


def headers() -> Path | None:
    """The folder of cuda.h: of the package nvidia-cuda-runtime, or of a toolkit."""
    try:
        import nvidia

        folders = [Path(folder) for folder in nvidia.__path__]
    except ImportError:
        folders = []
    found = [*(path for folder in folders for path in folder.glob("*/include/cuda.h"))]
    found += [path for path in [Path("/usr/local/cuda/include/cuda.h")] if path.exists()]
    return found[0].parent if found else None


def build(folder: Path) -> dict[str, str]:
    """Compile the stand-in into a folder; the environment of a process whose driver it is."""
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wshadow", "-Werror", "-fPIC"]
    subprocess.run(
        [*compiler, "-shared", "-fvisibility=hidden", "-isystem", str(headers()), TESTS / "driver.c",
         "-o", folder / "libcuda.so.1", "-pthread", "-ldl"],
        check=True,
    )  # fmt: skip
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    return {**os.environ, "LD_LIBRARY_PATH": path, "NUMBA_ENABLE_CUDASIM": "0", "PYTHONDONTWRITEBYTECODE": "1"}


# ---- a plugin of pytest ----------------------------------------------------------------------------------------------

_spent = Counter()  # seconds of the processor, and kernels


def _agree(got, want, *_, **__):
    assert np.shape(got) == np.shape(want), f"{np.shape(got)} in place of {np.shape(want)}"


def _timed(owner, name, what):
    real = getattr(owner, name)

    def timed(*args, **kwargs):
        start = time.process_time()
        try:
            return real(*args, **kwargs)
        finally:
            _spent[what] += time.process_time() - start
            _spent["kernels"] += what == "linking"

    setattr(owner, name, timed)


def pytest_report_header(config):
    import softnum

    return f"softnum: {Path(softnum.__file__).parent}"  # what is installed, which need not be the checkout beside


def pytest_configure(config):
    # PyTorch, of a driver that is not all there: it has no GPU then, and its tests are skipped
    config.addinivalue_line("filterwarnings", "ignore:CUDA initialization:UserWarning")
    from softnum.kernels.device.products import custom as gemm_custom  # before numba.cuda, which it looks for

    gemm_custom.try_out = lambda *_: None  # compares kernels with Python functions
    from numba.cuda import dispatcher

    _timed(dispatcher._Kernel, "__init__", "compiling")
    _timed(dispatcher._Kernel, "bind", "linking")
    np.testing.assert_array_equal = _agree
    np.array_equal = lambda got, want, **_: np.shape(got) == np.shape(want)
    np.argwhere = lambda a: np.empty((0, np.ndim(a)), np.int64)  # where bits differ


def _of_values(failure) -> bool:
    """Whether it is an assertion of a test, or an error that it expected; but not about a TypeError that it caught."""
    if failure.errisinstance(pytest.fail.Exception):
        return True
    if isinstance(failure.value.__context__, TypeError):
        return False
    where = [Path(entry.path) for entry in failure.traceback]
    where = [path for path in where if "numpy" not in path.parts]
    return failure.errisinstance(AssertionError) and where[-1].is_relative_to(TESTS.parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo and _of_values(call.excinfo):
        report.outcome, report.wasxfail = "skipped", str(call.excinfo.value).strip().partition("\n")[0][:120]
    return report


def pytest_terminal_summary(terminalreporter):
    said = ", ".join(f"{_spent[what]:.0f} s {what}" for what in ("compiling", "linking"))
    terminalreporter.write_line(f"{_spent['kernels']:.0f} kernels: {said}, of {time.process_time():.0f} s")


# ---- the program -----------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Run Python with these arguments; without -m at their head, with those of all tests that need a GPU."""
    if arguments[:1] != ["-m"]:
        files = [*TESTS.glob("test_*.py"), *TESTS.parent.glob("train/test_train_cuda*.py")]
        arguments = ["-m", "pytest", "-m", "gpu", *map(str, sorted(files)), *arguments]
    with tempfile.TemporaryDirectory() as folder:
        environment = {"STANDIN_FILL": "0", **build(Path(folder))}  # sums that are finite, places that there are
        if arguments[:2] == ["-m", "pytest"]:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(TESTS)]))
            arguments = [*arguments[:2], "-p", "dry_run", *arguments[2:]]
        return subprocess.run([sys.executable, "-P", *arguments], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
