"""Opens a page in a real browser and says as JSON what is seen.

`look.py PAGE.html CHROMIUM FOLDER`, where FOLDER is for screenshots.

It runs in an environment that has playwright (`make test-browser`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

DRAWN = """(name) => {
  const start = performance.now();
  document.getElementById("tab-" + name).click();
  document.body.offsetHeight;
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(
    () => done(performance.now() - start))));
}"""
READY = "performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart"


def main(path: str, chromium: str, folder: str) -> None:
    found: dict[str, Any] = {"errors": [], "requests": [], "dialogs": 0}
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs rights that a container's root does not give.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": 1400, "height": 850}, color_scheme=scheme
            )  # fmt: skip
            watch(page, found)
            page.goto(f"file://{path}")
            page.wait_for_selector("html[data-drawn]", timeout=60_000)
            found.setdefault("ready_ms", page.evaluate(READY))
            look(page, scheme, found, Path(folder))
            page.close()
        browser.close()
    print(json.dumps(found))


def watch(page: Page, found: dict[str, Any]) -> None:
    page.on("pageerror", lambda error: found["errors"].append(str(error)))
    page.on("console", lambda message: found["errors"].append(message.text))
    page.on("request", lambda request: found["requests"].append(request.url))

    def close(dialog: Any) -> None:
        found["dialogs"] += 1
        dialog.dismiss()

    page.on("dialog", close)


def look(page: Page, scheme: str, found: dict[str, Any], folder: Path) -> None:
    names = page.eval_on_selector_all("nav button", "all => all.map(one => one.dataset.part)")
    found["tabs"] = names
    times = found.setdefault("drawn_ms", {})
    for name in names:
        times[f"{name} {scheme}"] = page.evaluate(DRAWN, name)
        page.wait_for_timeout(300)
        page.screenshot(path=str(folder / f"{name}_{scheme}.png"))
    found[f"background {scheme}"] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    found["scripts"] = page.evaluate("document.scripts.length")
    found["elements"] = page.evaluate(
        "document.querySelectorAll('img, iframe, b > i, marquee').length"
    )
    by_keyboard(page, found, names)


def by_keyboard(page: Page, found: dict[str, Any], names: list[str]) -> None:
    """Goes through the tabs, and to a row, without a mouse."""
    page.focus(f"#tab-{names[0]}")
    reached = []
    for _ in names:
        page.keyboard.press("ArrowRight")
        reached.append(page.evaluate("document.activeElement.dataset.part"))
    found["reached"] = reached
    if "rows" in names:
        page.evaluate(DRAWN, "rows")
        page.focus("#rows .tabulator")
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(300)
        found["row"] = page.inner_text("#rows .side")
        found["titles"] = page.inner_text("#rows .tabulator-header")
        found["cells"] = page.inner_text("#rows .tabulator-table")
        page.locator("#rows .tabulator-header-filter input").nth(1).press_sequentially("failed")
        page.wait_for_timeout(600)
        found["failed_rows"] = page.evaluate(
            "document.querySelectorAll('#rows .tabulator-row').length"
        )


main(*sys.argv[1:])
