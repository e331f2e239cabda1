"""Open the built site in Chromium: no errors, no network, nothing missing or too wide.

    python scripts/look_at_site.py build/docs build/screenshots

Pages of every kind, in light and dark, at 400 and 1400 pixels; a picture of each.
Leaves with the number of findings.
"""

import shutil
import sys
import tempfile
from pathlib import Path

PAGES = (
    "index.html",
    "start-here.html",
    "which-method.html",
    "gallery/index.html",
    "gallery/plot_new_domain.html",
    "reference/api-coolhead.html",
    "reference/commands.html",
    "search.html?q=temperature",
)
WIDTHS = (400, 1400)
THEMES = ("light", "dark")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
MEASURE = """
const broken = [...document.images].filter(i => i.complete && !i.naturalWidth);
const nameless = [...document.querySelectorAll("article img")].filter(i => !i.alt);
return {
  wide: document.documentElement.scrollWidth - window.innerWidth,
  broken: broken.map(i => i.src),
  nameless: nameless.map(i => i.src),
  outside: performance.getEntriesByType("resource").map(e => e.name)
    .filter(name => !name.startsWith("file:") && !name.startsWith("data:")),
  results: document.querySelectorAll("ul.search li").length,
};
"""


def open_browser(profile: str):
    """A browser that keeps what pages complain of."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(
        options=options, service=Service(shutil.which("chromedriver"))
    )


def look(driver, site: Path, pictures: Path) -> list[str]:
    """Every finding as a sentence."""
    found = []
    for width in WIDTHS:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for theme in THEMES:
            media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            for page in PAGES:
                driver.get(site.resolve().as_uri() + "/" + page)
                where = f"{page}, {width} px, {theme}"
                found += [f"{where}: {words}" for words in complaints(driver, page)]
                name = page.partition("?")[0].replace("/", "-").removesuffix(".html")
                driver.save_screenshot(str(pictures / f"{name}-{width}-{theme}.png"))
    return found


def complaints(driver, page: str) -> list[str]:
    """What is wrong with the page that is open."""
    from selenium.webdriver.support.ui import WebDriverWait

    if "?q=" in page:
        wait = WebDriverWait(driver, 20)
        wait.until(lambda open: open.execute_script(MEASURE)["results"] > 0)
    seen = driver.execute_script(MEASURE)
    words = [f"console: {line['message']}" for line in driver.get_log("browser")]
    if seen["wide"] > 0:
        words.append(f"{seen['wide']} pixels too wide")
    for kind in ("broken", "nameless", "outside"):
        words += [f"{kind}: {address}" for address in seen[kind]]
    return words


def main(site: str, pictures: str) -> None:
    Path(pictures).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        driver = open_browser(profile)
        try:
            found = look(driver, Path(site), Path(pictures))
        finally:
            driver.quit()
    print("\n".join(found) or "nothing to complain of")
    raise SystemExit(min(len(found), 99))


if __name__ == "__main__":
    main(*sys.argv[1:])
