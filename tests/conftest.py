"""Settings and fixtures of the whole suite."""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from hypothesis import settings

import softnum
from softnum.runtime import _core


class Checkout:
    """Finds the checkout's packages ``tests`` and ``benchmarks`` from wherever pytest is called.

    The checkout itself is not on sys.path: its folders ``train`` and ``kernels`` are softnum.train and softnum.kernels,
    and bare they would be second copies.
    """

    ROOT = str(Path(__file__).resolve().parents[1])

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return PathFinder.find_spec(name, [cls.ROOT]) if name in ("tests", "benchmarks") else None


sys.meta_path.insert(0, Checkout)

from tests.support import quick  # noqa: E402
from tests.support.cases import cases_of, named, restrict  # noqa: E402
from tests.support.failures import Failures  # noqa: E402
from tests.support.fp_environments import control, preloaded  # noqa: E402, F401  fixtures
from tests.support.resume import Resume, digest_of_package  # noqa: E402

# the same examples on every run and machine; how fast a machine is decides nothing
settings.register_profile("softnum", deadline=None, derandomize=True, max_examples=150, database=None)
settings.load_profile("softnum")


def pytest_addoption(parser):
    parser.addoption("--case", metavar="TEXT", help="only cases, parametrized or within a test, whose name holds this")
    parser.addoption("--resume", metavar="FILE", type=Path, help="note in FILE what passes; leave out what has passed")
    parser.addoption("--failures", metavar="FILE", type=Path, help="write into FILE how tests fail, as soon as they do")


def pytest_configure(config):
    """Numba decides when it is imported, by whatever test, whether CUDA kernels run in its simulator or on a GPU."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "0" if config.option.markexpr == "gpu" else "1"
    os.environ["SOFTNUM_RECORDS"] = "none"  # what a test trains, it trains
    os.environ["NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS"] = "0"  # the tests of kernels are small, and warnings are errors
    if path := config.option.resume:
        if config.option.case or config.option.markexpr == "quick":
            raise pytest.UsageError("--resume notes whole tests; --case and -m quick run some of a test's cases")
        digest = digest_of_package(
            Path(softnum.__file__).parent, *(Path(Checkout.ROOT, x) for x in ("train", "kernels"))
        )
        worker = getattr(config, "workerinput", {})
        config.pluginmanager.register(Resume(path.absolute(), digest, worker.get("resume")))
    if config.option.failures and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config.option.failures.absolute()))


def pytest_ignore_collect(collection_path, config):
    """With -m quick the files of the quick tier alone are imported."""
    if config.option.markexpr == "quick" and collection_path.name.startswith("test_"):
        return quick.name_of(collection_path) not in quick.QUICK or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item, chosen in quick.choose(items):
        item.add_marker("quick")
        if config.option.markexpr == "quick":
            restrict(item, chosen)
    if config.option.case:
        for item in items:
            restrict(item, named(item, config.option.case))
        config.hook.pytest_deselected(items=[item for item in items if not cases_of(item)])
        items[:] = filter(cases_of, items)


@pytest.fixture(params=["portable", "avx2", "avx512", "neon"])
def isa(request):
    """Each instruction set that this machine runs, in turn."""
    if request.param not in _core.available_isas():
        pytest.skip(f"this CPU or build does not run {request.param}")
    before = _core.current_isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)


@pytest.fixture(params=["simulator", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    """Numba's CUDA module: kernels run in its simulator or, with -m gpu, on a GPU. The tests' bodies are the same."""
    from softnum.kernels.device.runtime import _cuda

    assert (request.param == "simulator") == _cuda.SIMULATOR, "tests on a GPU are run alone: pytest -m gpu"
    if request.param == "gpu":
        yield _cuda.cuda
        return
    from tests.support.simulator import in_turn

    with in_turn():
        yield _cuda.cuda
