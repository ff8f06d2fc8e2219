"""The playground's core, asked as its pages ask it: compiled natively, or in a page in headless Chromium."""

from __future__ import annotations

import ctypes as ct
import json
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path

import pytest

from tests.support.c_library import ARCHIVE, ROOT

__all__ = [
    "SITE", "Native", "browser_of", "built_site", "change", "native", "opened", "rows_of", "texts_in", "value_of",
    "window",
]  # fmt: skip

SITE = ROOT / "build" / "docs-playground"
CORE = ROOT / "build" / "wasm" / "playground.wasm"


class Native:
    """The C text of the playground, linked with the C library of this checkout."""

    def __init__(self, path: Path) -> None:
        self.c = ct.CDLL(str(path))
        self.c.pg_room.restype = ct.c_void_p
        self.c.pg_room.argtypes = [ct.c_size_t]
        self.c.pg_call.restype = ct.c_char_p

    def texts(self, requests: list[tuple]) -> list[str]:
        """An answer for each request, a command and its arguments."""
        answers = []
        for request in requests:
            line = "\n".join(map(str, request)).encode()
            ct.memmove(self.c.pg_room(len(line)), line, len(line))
            answers.append(self.c.pg_call().decode())
        return answers

    def ask(self, *request):
        """One answer, decoded."""
        return json.loads(self.texts([request])[0])


@cache
def native() -> Native:
    """The core as this machine's compiler makes it; a test without it is skipped."""
    if not ARCHIVE.exists() or shutil.which("cc") is None:
        pytest.skip("needs a C compiler and a build of softnum in this checkout")
    folder = ROOT / "build" / "playground-native"
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "playground.so"
    sources = sorted((ROOT / "docs" / "playground" / "c").glob("*.c"))
    newest = max(p.stat().st_mtime for p in [*sources, *sources[0].parent.glob("*.h"), ARCHIVE])
    if not made.exists() or made.stat().st_mtime < newest:
        command = ["cc", "-std=c11", "-O1", "-fPIC", "-shared", "-ffp-contract=off", f"-I{ROOT / 'csrc'}", *sources]
        temporary = folder / f"{time.monotonic_ns()}.so"  # several processes may be at it
        subprocess.run([*command, ARCHIVE, "-lm", "-pthread", "-o", temporary], check=True)
        temporary.replace(made)
    return Native(made)


def built_site() -> Path:
    """The pages, if they were built from this checkout's sources; else a test is skipped."""
    if shutil.which("make") is None or not CORE.exists() or not (SITE / "index.html").exists():
        pytest.skip("the playground is not built here: make playground (needs a compiler for WebAssembly)")
    asked = ["make", "-q", "-s", str(CORE.relative_to(ROOT)), "WASM_CC=none"]
    pages = (ROOT / "docs" / "playground").rglob("*")
    stale = max(p.stat().st_mtime for p in pages if p.suffix in (".py", ".html", ".js", ".css"))
    if subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode or (
        (SITE / "index.html").stat().st_mtime < max(stale, CORE.stat().st_mtime)
    ):
        pytest.skip("the playground is older than its sources: make playground")
    return SITE


def browser_of(profile: Path):
    """Headless Chromium under its driver, offline; skips where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and driver):
        pytest.skip("Chromium or its chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking",
                     "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    made.set_page_load_timeout(120)
    made.set_script_timeout(120)
    return made


def opened(browser, page: str, hash_: str = ""):
    """The browser, a lab of the built site open in it from its folder, and nothing said on the console."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get((built_site() / page).as_uri() + hash_)
    end = time.monotonic() + 60
    while (state := browser.execute_script("return document.documentElement.dataset.state")) != "ready":
        assert state != "failed" and time.monotonic() < end, (state, browser.get_log("browser"))
        time.sleep(0.02)
    return browser


def window(browser, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def texts_in(browser):
    """The page's own core, asked for many answers at once."""
    return lambda requests: browser.execute_script(
        "return arguments[0].map((request) => softnum.text(...request))", [[str(x) for x in r] for r in requests]
    )


def value_of(page, name: str) -> str:
    return page.execute_script("return document.getElementById(arguments[0]).textContent", name)


def rows_of(page, name: str) -> list[list[str]]:
    """The texts of a table's body."""
    script = "return [...document.getElementById(arguments[0]).tBodies[0].rows].map((r) => [...r.cells].map("
    return page.execute_script(script + "(c) => c.textContent))", name)


def change(page, name: str, value: str, event: str = "change") -> None:
    page.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event(arguments[2], {bubbles: true}))", name, value, event,
    )  # fmt: skip
