"""One browser for all of the playground's tests."""

from __future__ import annotations

import pytest

from tests.support.playground import browser_of


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    made = browser_of(tmp_path_factory.mktemp("profile"))
    yield made
    made.quit()
