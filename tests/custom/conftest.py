"""Compiled code of these tests goes to a cache of their own."""

import sys

import pytest

import softnum as sn
from tests.support.custom_examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTNUM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def fp8():
    return sn.CustomFormat.from_c(EXAMPLES / "fp8.c")


@pytest.fixture(scope="session")
def fp16():
    return sn.CustomFormat.from_c(EXAMPLES / "fp16.c", name="fp16")


@pytest.fixture(scope="session")
def lns8():
    return sn.CustomFormat.from_c(EXAMPLES / "lns8.c", "lns8")
