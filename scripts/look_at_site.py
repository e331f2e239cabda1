"""Check the built site in Chromium: errors, network access, missing or wide content.

    python scripts/look_at_site.py build/docs build/screenshots

Pages of every kind are opened in light and dark, at 400 and 1400 pixels, with a
screenshot each; every other page once at 400 pixels. The site's search must find the
words of `SEARCHED`. Exits with the number of findings.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

PAGES = (
    "index.html",
    "start-here.html",
    "which-method.html",
    "how-to/tables-and-boosters.html",
    "paper-reproduced.html",
    "statuses.html",
    "gallery/index.html",
    "gallery/new/plot_new_domain.html",
    "reference/api-coolhead.html",
    "reference/commands.html",
    "reference/coolhead.AutoCalibrator.html",
    "search.html?q=temperature",
)
# Words that readers search for.
SEARCHED = (
    *("pytorch", "gpu", "quickstart", "tutorial", "overconfident"),
    *("reliability diagram", "temperature scaling", "domain shift"),
)
WIDTHS = (400, 1400)
THEMES = ("light", "dark")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
MEASURE = """
const broken = [...document.images].filter(i => i.complete && !i.naturalWidth);
// A picture in the list of the gallery stands beside its title.
const nameless = [...document.querySelectorAll("article img")].filter(
  i => !i.alt && !i.closest(".sphx-glr-thumbcontainer"));
return {
  wide: document.documentElement.scrollWidth - window.innerWidth,
  broken: broken.map(i => i.src),
  nameless: nameless.map(i => i.src),
  outside: performance.getEntriesByType("resource").map(e => e.name)
    .filter(name => !name.startsWith(location.origin) && !name.startsWith("data:")),
  results: document.querySelectorAll("ul.search li").length,
};
"""


def open_browser(profile: str):
    """Open a browser that records the messages of pages."""
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


class Silent(SimpleHTTPRequestHandler):
    """Serve files and log nothing."""

    def log_message(self, format: str, *words: object) -> None:
        """Log nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site and yield its address."""
    handler = partial(Silent, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def look(driver, site: Path, address: str, pictures: Path) -> list[str]:
    """Return a sentence for every finding."""
    found = []
    for width in WIDTHS:
        for theme in THEMES:
            set_screen(driver, width, theme)
            for page in PAGES:
                driver.get(f"{address}/{page}")
                where = f"{page}, {width} px, {theme}"
                found += [f"{where}: {words}" for words in complaints(driver, page)]
                name = page.partition("?")[0].replace("/", "-").removesuffix(".html")
                driver.save_screenshot(str(pictures / f"{name}-{width}-{theme}.png"))
    set_screen(driver, WIDTHS[0], THEMES[0])
    for words in SEARCHED:
        driver.get(f"{address}/search.html?q={words.replace(' ', '+')}")
        found += [f"search {words!r}: {one}" for one in complaints(driver, "?q=")]
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site).as_posix()
        if page not in PAGES and not page.startswith("_static"):
            driver.get(f"{address}/{page}")
            found += [f"{page}: {words}" for words in complaints(driver, page)]
    return found


def set_screen(driver, width: int, theme: str) -> None:
    """Set the width in pixels and the theme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def complaints(driver, page: str) -> list[str]:
    """Return what is wrong with the open page."""
    from selenium.webdriver.support.ui import WebDriverWait

    if "?q=" in page:
        wait = WebDriverWait(driver, 20)
        wait.until(lambda open: open.execute_script(MEASURE)["results"] > 0)
    seen = driver.execute_script(MEASURE)
    words = [
        f"console: {line['message']}"
        for line in driver.get_log("browser")
        if line["level"] in ("WARNING", "SEVERE")
    ]
    if seen["wide"] > 0:
        words.append(f"{seen['wide']} pixels too wide")
    for kind in ("broken", "nameless", "outside"):
        words += [f"{kind}: {address}" for address in seen[kind]]
    return words


def main(site: str, pictures: str) -> None:
    Path(pictures).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, served(Path(site)) as address:
        driver = open_browser(profile)
        try:
            found = look(driver, Path(site), address, Path(pictures))
        finally:
            driver.quit()
    print("\n".join(found) or "no findings")
    raise SystemExit(min(len(found), 99))


if __name__ == "__main__":
    main(*sys.argv[1:])
