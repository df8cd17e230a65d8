"""`log --html` in a real browser: it shows the truth, needs nothing from anywhere, runs nothing foreign, works by keyboard."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cli.browser import Browser, opened
from cli.recorded import EVIL, recorded_stories

from toolrunner.cli.views.page import About, page
from toolrunner.cli.views.story import Story


@pytest.fixture(scope="module")
def told() -> tuple[Story, ...]:
    return recorded_stories()


@pytest.fixture(scope="module")
def text(told: tuple[Story, ...]) -> str:
    return page(told, About(f"demo {EVIL}", "/tmp/journal.db", datetime.now(UTC), open_end=False))


@pytest.fixture
def browser(text: str, tmp_path: Path) -> Iterator[Browser]:
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    with opened(file, tmp_path) as found:
        yield found


class Elements(HTMLParser):
    """Every element that the text makes, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_nothing_on_the_page_is_foreign_markup_or_comes_from_elsewhere(text: str) -> None:
    elements = Elements(text).found
    assert {tag for tag, _ in elements} <= {
        "html", "head", "meta", "title", "style", "body", "h1", "p", "ul", "li", "main", "details", "summary", "span", "b",
        "svg", "g", "rect", "path", "div", "dl", "dt", "dd", "table", "tr", "td", "pre",
    }  # fmt: skip
    names = {name for _, attributes in elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "href", "style", "action", "srcdoc")]
    assert "url(" not in text
    assert "@import" not in text
    assert not [one for one in text if one in "\u202e\x1b\x00"]
    assert "&lt;script&gt;" in text


def test_a_browser_shows_every_call_with_its_outcome_and_asks_nobody_for_anything(
    browser: Browser, told: tuple[Story, ...]
) -> None:
    rows = browser.evaluate("[...document.querySelectorAll('summary')].map(row => row.innerText)")
    assert len(rows) == len(told)
    for row, story in zip(rows, told, strict=True):
        assert story.verdict.replace("_", " ") in row
        # Not by colour alone: there is a sign and a word.
        assert re.match(r"[✓✗■◷⊘⊝…] \w+", row)
    assert browser.evaluate("document.title").startswith("toolrunner: demo <script>")
    problems = [one["params"] for one in browser.events if one["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")]
    assert problems == []
    asked = [one["params"]["request"]["url"] for one in browser.events if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("file:")] == []
    assert len(asked) == 1


def test_the_pages_policy_lets_no_script_and_no_style_in(browser: Browser) -> None:
    browser.evaluate("document.body.appendChild(document.createElement('script')).textContent = 'document.title = \"owned\"'")
    browser.evaluate("document.body.setAttribute('onclick', 'document.title = \"owned\"'); document.body.click()")
    browser.evaluate("document.body.insertAdjacentHTML('beforeend', '<b id=x style=\"position:fixed\">x</b>')")
    assert "owned" not in browser.evaluate("document.title").split(" ")
    assert browser.evaluate("getComputedStyle(document.querySelector('#x')).position") == "static"


def test_outcomes_have_colours_bars_have_length_and_marks_their_titles(browser: Browser) -> None:
    colours = browser.evaluate("[...document.querySelectorAll('.outcome')].map(one => getComputedStyle(one).color)")
    assert len(set(colours)) >= 4
    widths = browser.evaluate(
        "[...document.querySelectorAll('summary svg .running')].map(one => one.getBoundingClientRect().width)"
    )
    assert len(widths) >= 5
    assert all(width > 0 for width in widths)
    titles = browser.evaluate("[...document.querySelectorAll('title')].map(one => one.textContent)")
    assert any(title.startswith("effect applied: file draft") for title in titles)
    assert any(title.startswith("effect unknown: http POST /orders") for title in titles)
    assert any(title.startswith("stop requested: by caller") for title in titles)


def test_details_open_at_a_click_and_close_again(browser: Browser) -> None:
    place = browser.evaluate(
        "(() => { const r = document.querySelector('summary').getBoundingClientRect(); return [r.x + 20, r.y + 10] })()"
    )
    assert browser.evaluate("document.querySelector('details').open") is False
    browser.click(*place)
    assert browser.evaluate("document.querySelector('details').open") is True
    seen = browser.evaluate("document.querySelector('details').innerText")
    for word in ("recorded", "dispatched", "effect planned", "effect applied", "ended", "settled", "key-1", "c1"):
        assert word in seen
    browser.click(*place)
    assert browser.evaluate("document.querySelector('details').open") is False


def test_everything_is_reached_and_opened_by_keyboard(browser: Browser, told: tuple[Story, ...]) -> None:
    for number in range(len(told)):
        browser.press("Tab", 9)
        assert browser.evaluate("document.activeElement.tagName") == "SUMMARY"
        index = browser.evaluate("[...document.querySelectorAll('summary')].indexOf(document.activeElement)")
        assert index == number
    browser.press("Enter", 13, "\r")
    assert browser.evaluate("document.activeElement.parentElement.open") is True
    assert browser.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") > 0


def test_a_narrow_screen_has_no_sideways_scrolling(browser: Browser) -> None:
    browser.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400


def test_an_empty_session_has_a_page_too(tmp_path: Path) -> None:
    file = tmp_path / "empty.html"
    file.write_text(page((), About("empty", "/tmp/journal.db", datetime.now(UTC), open_end=True)), encoding="utf-8")
    with opened(file, tmp_path) as found:
        assert "No call is on record." in found.evaluate("document.body.innerText")
        assert "its owner was still at work" in found.evaluate("document.body.innerText")
