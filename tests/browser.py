"""A headless Chromium for tests of pages; where there is none, they are skipped."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

QUIET = (  # nothing that a browser does for itself
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@contextmanager
def browser(profile: Path) -> Iterator["webdriver.Chrome"]:  # noqa: F821
    """Debian's Chromium, driven by selenium, with a log of what it asks for."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("pages are tested in chromium, with chromium-driver: apt-get install both")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    running.set_script_timeout(60)
    try:
        yield running
    finally:
        running.quit()


def asked_for(running) -> list[str]:
    """Every address that the page has asked for since the last look."""
    messages = [json.loads(line["message"])["message"] for line in running.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [params["request"]["url"] for params in sent]
