"""Open the built site in Chromium: no errors, no network, nothing missing or too wide.

    python scripts/look_at_site.py build/docs build/screenshots

Pages of every kind, in light and dark, at 400 and 1400 pixels, a picture of each; and
every other page once, on a telephone. The site is served on this machine alone, as
readers get it. Leaves with the number of findings.
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
    "gallery/plot_new_domain.html",
    "reference/api-coolhead.html",
    "reference/commands.html",
    "search.html?q=temperature",
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


class Silent(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, format: str, *words: object) -> None:
        """Requests are no news."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Address of the site as long as it is looked at."""
    handler = partial(Silent, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def look(driver, site: Path, address: str, pictures: Path) -> list[str]:
    """Every finding as a sentence."""
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
    for path in sorted(site.rglob("*.html")):
        page = path.relative_to(site).as_posix()
        if page not in PAGES and not page.startswith("_static"):
            driver.get(f"{address}/{page}")
            found += [f"{page}: {words}" for words in complaints(driver, page)]
    return found


def set_screen(driver, width: int, theme: str) -> None:
    """So many pixels across, in light or dark."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def complaints(driver, page: str) -> list[str]:
    """What is wrong with the page that is open."""
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
    print("\n".join(found) or "nothing to complain of")
    raise SystemExit(min(len(found), 99))


if __name__ == "__main__":
    main(*sys.argv[1:])
