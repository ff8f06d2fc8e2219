"""The report in a real browser, headless Chromium: it draws, its controls work, it is quiet and stays offline."""

import shutil
import time
from pathlib import Path

import pytest

from softnum.tta import write_report
from tests.support.report_folders import REACHED, comparison

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium or its chromedriver is not installed")
EVIL = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking",
                     "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = comparison(tmp_path_factory.mktemp("tta"), names={"b-binary16": EVIL})
    return write_report(folder, folder / "report.html")


@pytest.fixture
def page(browser, file):
    """The report, drawn, in a window of 1280 pixels by day."""
    window(browser, 1280)
    scheme(browser, "light")
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(Path(file).as_uri())
    drawn(browser)
    yield browser
    assert browser.get_log("browser") == []  # nothing on the console, whatever the test did


def drawn(browser):
    """Wait until nothing is being drawn."""
    end = time.monotonic() + 60
    while (state := browser.execute_script("return document.documentElement.dataset.state")) != "drawn":
        assert state != "failed" and time.monotonic() < end, (state, browser.get_log("browser"))
        time.sleep(0.02)


def window(browser, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def scheme(browser, name):
    features = [{"name": "prefers-color-scheme", "value": name}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def svg(browser, name):
    return browser.find_element(By.CSS_SELECTOR, f"[data-draw='{name}'] svg.marks")


def lines_of(browser, name="curves"):
    """Colours of the lines of a chart, as drawn: one thick for each design and one thin for each run."""
    script = """return [...document.querySelectorAll(`[data-draw="${arguments[0]}"] svg g.mark-line path`)]
        .filter((path) => path.getAttribute("d")).map((path) => path.getAttribute("stroke"))"""
    return browser.execute_script(script, name)


def labels_of(browser, name, role="axis-label"):
    script = """return [...document.querySelectorAll(`[data-draw="${arguments[0]}"] svg .role-${arguments[1]} text`)]
        .filter((text) => text.getAttribute("opacity") !== "0").map((text) => text.textContent)"""
    return browser.execute_script(script, name, role)


def box(browser, design):
    return next(b for b in browser.find_elements(By.NAME, "design") if b.get_attribute("value") == design)


def test_everything_is_drawn(page):
    places = page.find_elements(By.CSS_SELECTOR, "[data-draw]")
    assert len(places) == 17
    for place in places:
        drawing = place.find_element(By.CSS_SELECTOR, "svg.marks")
        assert drawing.size["height"] > 60 and drawing.size["width"] > 300
        assert place.find_elements(By.CSS_SELECTOR, "svg .mark-group path"), place.get_attribute("data-draw")
    assert len(lines_of(page)) == 3 * len(REACHED) + len(REACHED)


def test_it_loads_nothing_but_itself(page, file):
    messages = [entry["message"] for entry in page.get_log("performance")]
    asked = [m for m in messages if '"Network.requestWillBeSent"' in m]
    assert asked and all(Path(file).as_uri() in m or '"url":"data:' in m or '"url":"blob:' in m for m in asked)
    entries = page.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in entries if not name.startswith(("data:", "blob:"))] == []
    # and could not: the policy refuses what a script might try
    refused = page.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org/').then(() => done(false), () => done(true))"
    )
    assert refused
    assert all("Content Security Policy" in row["message"] for row in page.get_log("browser"))


def test_a_design_is_hidden_everywhere_and_comes_back(page):
    before = lines_of(page)
    colour = "#000000"
    assert before.count(colour) == 4
    height = svg(page, "tta-stated-hardware").size["height"]
    box(page, "a-float32").click()
    drawn(page)
    after = lines_of(page)
    assert colour not in after and len(after) == len(before) - 4
    assert "a-float32" not in labels_of(page, "tta-stated-hardware")
    assert "a-float32" not in labels_of(page, "utilisation-stated-hardware")
    assert svg(page, "tta-stated-hardware").size["height"] < height
    rows = page.find_elements(By.CSS_SELECTOR, "tr[data-design]")
    hidden = {row.get_attribute("data-design") for row in rows if row.get_attribute("hidden")}
    assert "a-float32" in hidden and "c-wang-fp8" not in hidden
    page.find_element(By.ID, "every-design").click()
    drawn(page)
    assert sorted(lines_of(page)) == sorted(before) and "a-float32" in labels_of(page, "tta-stated-hardware")
    assert svg(page, "tta-stated-hardware").size["height"] == height


def test_designs_toggle_by_keyboard(page):
    focus = box(page, "h-posit8")
    page.execute_script("arguments[0].focus()", focus)
    focus.send_keys(Keys.SPACE)
    drawn(page)
    assert not focus.is_selected() and len(lines_of(page)) == 4 * (len(REACHED) - 1)
    focus.send_keys(Keys.SPACE)
    drawn(page)
    assert len(lines_of(page)) == 4 * len(REACHED)


def test_no_design_at_all_is_no_error(page):
    for each in page.find_elements(By.NAME, "design"):
        each.click()
    drawn(page)
    assert not any(place.is_displayed() for place in page.find_elements(By.CSS_SELECTOR, "[data-draw] svg.marks"))
    assert not any(row.is_displayed() for row in page.find_elements(By.CSS_SELECTOR, "tr[data-design]"))
    scheme(page, "dark")  # what draws everything anew
    time.sleep(0.1)
    drawn(page)
    box(page, "c-wang-fp8").click()
    drawn(page)
    assert len(lines_of(page)) == 4 and svg(page, "curves").is_displayed()


def choose(page, control, text):
    select = page.find_element(By.CSS_SELECTOR, f"select[data-chart='curves'][data-control='{control}']")
    Select(select).select_by_visible_text(text)
    drawn(page)


def test_axes_change(page):
    def places(text):
        script = """const found = [...document.querySelectorAll('[data-draw="curves"] svg .role-axis-label text')]
            .find((label) => label.textContent === arguments[0]);
            return found && Number(found.getAttribute("transform").match(/translate\\(([\\d.]+)/)[1])"""
        return page.execute_script(script, text)

    assert page.find_element(By.CSS_SELECTOR, "[data-draw='curves'] svg.marks").text.count("iterations") == 1
    gaps = places("20") - places("10"), places("40") - places("20")
    assert gaps[0] == pytest.approx(gaps[1], abs=1.5)  # equal ratios are equal distances
    choose(page, "x-axis", "linear")
    gaps = places("20") - places("10"), places("40") - places("20")
    assert 2 * gaps[0] == pytest.approx(gaps[1], abs=1.5)  # equal differences are
    choose(page, "over", "time, stated hardware")
    assert "time of training, stated hardware" in labels_of(page, "curves", "axis-title")
    assert any(label.endswith("µs") for label in labels_of(page, "curves"))
    choose(page, "over", "epochs")
    assert "epochs (passes over the training samples)" in labels_of(page, "curves", "axis-title")
    # the designs that are hidden stay hidden when a chart is drawn anew
    box(page, "a-float32").click()
    choose(page, "x-axis", "logarithmic")
    assert len(lines_of(page)) == 4 * (len(REACHED) - 1)
    page.find_element(By.ID, "every-design").click()
    drawn(page)


def test_pointing_at_a_mark_says_what_it_is(page):
    chart = svg(page, "curves")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    action = webdriver.ActionChains(page)
    action.move_to_element(chart).move_by_offset(40, -60).move_by_offset(3, 2).perform()
    tip = page.find_element(By.ID, "vg-tooltip-element")
    end = time.monotonic() + 10
    while "visible" not in tip.get_attribute("class") and time.monotonic() < end:
        time.sleep(0.02)
    assert tip.is_displayed()
    text = tip.text
    assert "design" in text and "seed" in text and "accuracy" in text and "iteration" in text
    action.reset_actions()


def test_names_of_users_are_text(page):
    assert page.title == "Time to accuracy: mlp on digits"
    assert page.find_elements(By.CSS_SELECTOR, "img[src='x']") == []
    assert EVIL in [row.get_attribute("data-design") for row in page.find_elements(By.CSS_SELECTOR, "tr[data-design]")]
    chart = svg(page, "tta-stated-hardware")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    bar = page.find_elements(By.CSS_SELECTOR, "[data-draw='tta-stated-hardware'] svg .mark-rect path")[1]
    webdriver.ActionChains(page).move_to_element(bar).move_by_offset(2, 1).perform()
    tip = page.find_element(By.ID, "vg-tooltip-element")
    end = time.monotonic() + 10
    while EVIL not in tip.text and time.monotonic() < end:
        time.sleep(0.02)
    assert EVIL in tip.text and tip.find_elements(By.TAG_NAME, "img") == []


@pytest.mark.parametrize("width", [400, 768])
def test_a_narrow_window_scrolls_down_only(page, width):
    window(page, width)
    page.refresh()
    drawn(page)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    for place in page.find_elements(By.CSS_SELECTOR, "[data-draw] svg.marks"):
        assert 150 < place.size["width"] <= width
    window(page, 1280)  # charts follow the window
    time.sleep(0.2)
    drawn(page)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 1280


def test_by_night_everything_is_legible(page):
    def colours():
        paper = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        return paper, set(lines_of(page))

    day = colours()
    scheme(page, "dark")
    time.sleep(0.1)
    drawn(page)
    night = colours()
    assert day[0] == "rgb(255, 255, 255)" and night[0] == "rgb(20, 23, 27)" and not day[1] & night[1]

    def light(colour):
        return sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) / 3

    assert all(light(colour) < 200 for colour in day[1]) and all(light(colour) > 110 for colour in night[1])


def test_every_table_and_control_is_named(page):
    unnamed = page.execute_script(
        """const named = (e) => e.labels?.length || (e.tagName === "BUTTON" && e.textContent.trim()) || e.caption
            || e.querySelector("figcaption");
        return [...document.querySelectorAll("input, select, button, table, figure")].filter((e) => !named(e))
            .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    ids = page.execute_script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    links = "return [...document.querySelectorAll('a[href^=\"#\"]:not(.vega-actions *)')].map((e) => e.hash.slice(1))"
    targets = page.execute_script(links)
    assert set(targets) <= set(ids)
    own = [name for name in ids if name != "vg-tooltip-element" and not name.startswith(("gradient", "clip"))]
    assert len(set(own)) == len(own)
