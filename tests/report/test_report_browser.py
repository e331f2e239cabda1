"""The report in a real browser: it opens, sorts, filters and fits every screen."""

import csv
import io
import json
import os
import re
import shutil
from base64 import b64decode
from urllib.parse import unquote

import pytest
from synthetic_run import FEW_METHODS, TEMPERATURES, write_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
REQUIRED = os.environ.get("COOLHEAD_REQUIRE_BROWSER") == "1"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WIDTHS = (400, 1400)

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """One browser with an empty profile for all tests of this file."""
    if CHROMIUM is None or DRIVER is None:
        reason = "Chromium or its driver was not found: the report was not opened"
        if REQUIRED:
            pytest.fail(f"COOLHEAD_REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    # The path of the driver is given: selenium looks for no other and fetches none.
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture
def opened(driver, made, page):
    """The report, freshly opened at 1400 pixels in light mode."""
    resize(driver, 1400)
    driver.get((made / "report.html").as_uri())
    return driver


def resize(driver, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(driver, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def column(driver, table, number):
    """Texts of one column of a table, the visible rows only."""
    script = """
      return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
        .filter(row => !row.hidden)
        .map(row => row.cells[arguments[1]].textContent);
    """
    return driver.execute_script(script, table, number)


def test_it_opens_without_errors_and_without_network(driver, made, page):
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get((made / "report.html").as_uri())
    assert driver.get_log("browser") == []
    messages = [
        json.loads(m["message"])["message"] for m in driver.get_log("performance")
    ]
    sent = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert (made / "report.html").as_uri() in sent
    assert not [url for url in sent if url.startswith(("http", "ws", "ftp"))]
    names = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert all(n.startswith("data:") for n in driver.execute_script(names))


def test_a_hostile_name_does_nothing(opened):
    from selenium.common.exceptions import NoAlertPresentException

    with pytest.raises(NoAlertPresentException):
        _ = opened.switch_to.alert.text
    assert "<script>alert(1)</script> > amazon" in opened.page_source.replace(
        "&lt;", "<"
    ).replace("&gt;", ">")


def test_figures_have_size_and_text(opened):
    opened.find_element("css selector", "[id$=-map] details:has(.maps) summary").click()
    script = """
      return [...document.querySelectorAll('svg.figure, svg.panel, svg.map')]
        .filter(figure => figure.checkVisibility())
        .map(figure => {
          const box = figure.getBoundingClientRect();
          return [box.width, box.height, figure.textContent.trim().length];
        });
    """
    found = opened.execute_script(script)
    assert len(found) >= 6 + 2 * 6 + 6
    assert all(w > 90 and h > 60 and text > 0 for w, h, text in found)


def test_figures_do_not_spill_out_of_themselves(opened):
    script = """
      const out = [];
      document.querySelectorAll('svg.figure').forEach(figure => {
        const box = figure.getBoundingClientRect();
        figure.querySelectorAll('text').forEach(text => {
          const own = text.getBoundingClientRect();
          if (own.left < box.left - 3 || own.right > box.right + 3)
            out.push(text.textContent);
        });
      });
      return out;
    """
    assert opened.execute_script(script) == []


def test_sorting(opened):
    head = opened.find_elements("css selector", "#table-0 thead button")[1]
    head.click()
    upward = [float(text) for text in column(opened, "table-0", 1)]
    assert upward == sorted(upward) and len(upward) == len(FEW_METHODS)
    head.click()
    assert [float(text) for text in column(opened, "table-0", 1)] == upward[::-1]
    first = opened.find_elements("css selector", "#table-0 thead button")[0]
    first.click()
    names = column(opened, "table-0", 0)
    assert names == sorted(names, key=str.lower)


def test_filtering(opened):
    field = opened.find_element("css selector", "#table-0 input[type=search]")
    field.send_keys("set-l")
    assert column(opened, "table-0", 0) == ["Set-level"]
    field.clear()
    field.send_keys("nothing of this name")
    assert column(opened, "table-0", 0) == []


def test_details_open(opened):
    part = opened.find_element("css selector", "article.split details")
    panels = part.find_elements("css selector", "svg.panel")
    assert not panels[0].is_displayed()
    part.find_element("css selector", "summary").click()
    assert panels[0].is_displayed()
    assert len(panels) == len(FEW_METHODS) - 2


def test_csv_download_holds_the_numbers_of_the_table(opened):
    link = opened.find_element("css selector", "#table-0 a.csv")
    assert link.get_attribute("download") == "summary.csv"
    content = unquote(link.get_attribute("href").split(",", 1)[1])
    rows = list(csv.DictReader(io.StringIO(b64decode(content).decode())))
    written = [float(r["value"]) for r in rows if r["column"] == "ECE"]
    shown = [float(text) for text in column(opened, "table-0", 1)]
    assert shown == pytest.approx(written, abs=0.006)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_the_width(opened, width):
    resize(opened, width)
    opened.execute_script(
        "document.querySelectorAll('details').forEach(d => d.open = 1)"
    )
    script = "return document.documentElement.scrollWidth"
    assert opened.execute_script(script) <= width


def test_on_a_phone_the_first_tables_are_not_clipped(opened):
    """Verdicts, methods and thresholds fit into 400 pixels without scrolling."""
    resize(opened, 400)
    script = """
      return [...document.querySelectorAll('.domains, .heat, .abstain')].map(table =>
        [table.className, table.offsetWidth - table.parentNode.clientWidth]);
    """
    found = opened.execute_script(script)
    assert len(found) == 3
    assert not [name for name, beyond in found if beyond > 0]


def test_the_navigation_stays_in_view_and_leads_to_every_section(opened):
    links = opened.find_elements("css selector", "nav a")
    sections = [link.get_attribute("hash")[1:] for link in links]
    assert len(sections) >= 9
    ids = [
        s.get_attribute("id") for s in opened.find_elements("css selector", "section")
    ]
    assert sections == [name for name in ids if name != "problems"]
    links[-1].click()
    place = "return document.querySelector('nav').getBoundingClientRect().top"
    assert opened.execute_script(place) == 0


def test_six_methods_are_shown_until_all_are_asked_for(opened, driver, tmp_path):
    from coolhead.lab.report import write_report

    run = write_run(tmp_path / "run", methods=tuple(TEMPERATURES))
    driver.get(write_report(run).as_uri())

    def shown():
        heads = driver.find_elements("css selector", "table.heat thead th")
        return sum(head.is_displayed() for head in heads) - 1

    assert shown() == 6
    driver.find_element("css selector", ".show-all").click()
    assert shown() == len(TEMPERATURES)


def test_it_prints_on_eight_pages_at_most(driver, tmp_path):
    from coolhead.lab.report import write_report

    domains = ("a", "b", "c", "d")
    run = write_run(tmp_path / "run", domains, tuple(TEMPERATURES), pictures=True)
    driver.get(write_report(run).as_uri())
    settings = {"printBackground": True, "paperWidth": 8.27, "paperHeight": 11.69}
    printed = b64decode(driver.execute_cdp_cmd("Page.printToPDF", settings)["data"])
    assert 0 < len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) <= 8


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(opened, scheme):
    prefer(opened, scheme)
    # Contrast of text with the nearest painted background, by the rule of WCAG 2.
    script = """
      const parse = c => c.match(/[\\d.]+/g).map(Number);
      const light = c => {
        const [r, g, b] = parse(c).map(v => v / 255)
          .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = e => {
        for (; e; e = e.parentElement) {
          const c = getComputedStyle(e).backgroundColor;
          if (parse(c)[3] !== 0) return c;
        }
        return 'rgb(255, 255, 255)';
      };
      const poor = [];
      const wanted = 'p, li, td, th, dd, dt, h1, h2, summary, figcaption, '
        + 'svg.figure text, svg.panel text';
      document.querySelectorAll(wanted).forEach(e => {
          if (!e.textContent.trim()) return;
          const style = getComputedStyle(e);
          const ink = e.closest('svg') ? style.fill : style.color;
          const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
          if ((a + 0.05) / (b + 0.05) < 4.4)
            poor.push([e.textContent.trim().slice(0, 30), ink, ground(e)]);
        });
      return poor;
    """
    try:
        assert opened.execute_script(script) == []
    finally:
        prefer(opened, "light")


def test_without_script_every_table_is_shown(driver, made, page):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get((made / "report.html").as_uri())
        tables = driver.find_elements("css selector", "#tables table")
        assert len(tables) > 8
        for table in tables:
            assert table.find_elements("css selector", "tbody tr")
        assert not driver.find_elements("css selector", "#tables input")
        links = driver.find_elements("css selector", "#tables a.csv")
        assert len(links) == len(tables)
        second = driver.find_element("css selector", "#table-1")
        second.find_element("css selector", "summary").click()
        assert second.find_element("css selector", "table").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_any_method_can_be_shown_after(opened):
    from selenium.webdriver.support.ui import Select

    def shown():
        script = "return [...document.querySelectorAll('.slot figure')].map(f => {0})"
        methods = opened.execute_script(script.replace("{0}", "f.dataset.method"))
        words = opened.execute_script(script.replace("{0}", "f.textContent"))
        return methods, words

    field = opened.find_element("css selector", ".choose select")
    assert set(shown()[0]) == {field.get_attribute("value")}
    choice = Select(field)
    assert len(choice.options) == len(FEW_METHODS) - 1
    choice.select_by_value("target-only")
    methods, words = shown()
    assert methods == ["target-only"] * 6
    assert all("after Target-only (oracle)" in text for text in words)
    shown_means = opened.find_element("css selector", ".choose output").text
    assert shown_means.startswith("Target-only (oracle): mean ECE")
    assert shown_means.endswith("of 6")
    # The means are those of the table.
    names, errors = (column(opened, "table-0", number) for number in (0, 1))
    rows = dict(zip(names, errors, strict=True))
    after = float(shown_means.split(" % before, ")[1].split(" %")[0])
    assert after == pytest.approx(float(rows["Target-only (oracle)"]), abs=0.1)


def test_a_bar_shows_its_numbers_at_the_pointer(opened):
    from selenium.webdriver import ActionChains

    panel = opened.find_element("css selector", ".slot svg.panel")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", panel)
    tip = opened.find_element("css selector", ".tip")
    assert not tip.is_displayed()
    # The middle of the last bar: 97 of a drawing that runs from -9 to 102.
    across = int(panel.size["width"] * (106 / 111 - 0.5))
    ActionChains(opened).move_to_element_with_offset(panel, across, 0).perform()
    left, right, confidence, rows = (
        panel.get_attribute("data-bins").split(" ")[-1].split(":")
    )
    assert float(left) > 90
    assert tip.text == f"confidence {confidence} %, right {right} %, {int(rows):,} rows"
    ActionChains(opened).move_to_element_with_offset(panel, 0, -150).perform()
    assert not tip.is_displayed()


def test_the_heat_map_is_sorted_by_a_click(opened):
    head = opened.find_elements("css selector", "table.heat thead button")[1]
    head.click()
    script = """
      return [...document.querySelectorAll('table.heat tbody tr')]
        .map(row => parseFloat(row.cells[1].textContent));
    """
    values = opened.execute_script(script)
    assert values == sorted(values) and len(values) == 6


def test_on_paper_tables_fit_and_no_tool_is_left(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    wide = "return document.documentElement.scrollWidth"
    try:
        opened.execute_script("dispatchEvent(new Event('beforeprint'))")
        # The width of A4 without its margins.
        resize(opened, 718)
        assert opened.execute_script(wide) <= 718
        tools = opened.find_elements("css selector", ".tools input, .tools select, nav")
        assert tools and not any(tool.is_displayed() for tool in tools)
        first, *others = opened.find_elements("css selector", "details.table table")
        assert first.is_displayed() and not any(one.is_displayed() for one in others)
    finally:
        opened.execute_script("dispatchEvent(new Event('afterprint'))")
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
