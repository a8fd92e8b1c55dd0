"""The page in a real browser: by keys, through a kill, on a phone, for a screen reader."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

from marginparts.labeling.journal import Journal
from marginparts.labeling.state import State

pytestmark = [pytest.mark.extra, pytest.mark.wide]

WORDS = {"cat": "purr paw whisker", "dog": "bark bone leash", "cow": "moo milk barn"}
NASTY = "<img src=x onerror=alert(1)>"


def text(k):
    kind = list(WORDS)[k % 3]
    words = WORDS[kind].split()
    odd = NASTY if k % 3 == 2 else ""
    return f"{words[k % 3]} {words[(k + 1) % 3]} sample{k % 17} {odd} number{k}"


def truth(shown):
    return next(kind for kind, words in WORDS.items() if any(w in shown for w in words.split()))


@pytest.fixture(scope="module")
def driver():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    browser, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not chromedriver:
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=Service(chromedriver)) as found:
        yield found


class Program:
    """The command, as a process of its own."""

    def __init__(self, file):
        command = [sys.executable, "-m", "marginparts", "label", str(file), "--text", "text",
                   "--no-browser", "--who", "ann"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=30)[0]
        return said, self.process.returncode


class Page:
    def __init__(self, driver, address, size=(1280, 900)):
        self.driver = driver
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get("about:blank")
        driver.get_log("browser")  # what a page said whose program was killed
        driver.get(address)
        self.until(lambda: self("document.getElementById('which').textContent") != "Sample")

    def __call__(self, script):
        return self.driver.execute_script(f"return {script}")

    def until(self, what, seconds=20):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, "the page does not get there"
            time.sleep(0.02)

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    @property
    def which(self):
        return self("document.getElementById('which').textContent")

    @property
    def labels(self):
        names = "[...document.querySelectorAll('#manage li span:first-child')]"
        return self(f"{names}.map(e => e.textContent)")

    def counts(self):
        known = self("document.getElementById('known').textContent")
        return int(known.split()[0])

    def answer(self):
        """Label what is shown by its key, or by typing where it has none."""
        before = self.which
        kind = truth(self("document.getElementById('shown').textContent"))
        if kind in self.labels:
            self.press(str(self.labels.index(kind) + 1))
        else:
            self.press("t", kind, "\ue007")
        self.until(lambda: self.which != before)

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "docs.csv"
    with path.open("w", newline="") as target:
        csv.writer(target).writerows([["text"], *([text(k)] for k in range(90))])
    return path


def test_forty_samples_by_keys_through_a_kill(driver, file):
    journal = file.with_name("docs.csv.labels.jsonl")
    with Program(file) as program:
        page = Page(driver, program.address)
        for _ in range(25):
            page.answer()
        assert page.counts() == 25
        page.press("u")
        page.until(lambda: page.counts() == 24)
        page.answer()
        page.press("s")
        page.until(lambda: "1 skipped" in page("document.getElementById('known').textContent"))
        assert page.errors() == []
        program.kill()

    with Program(file) as program:
        page = Page(driver, program.address)
        assert page.counts() == 25
        for _ in range(15):
            page.answer()
        merged = page("""(() => {
            document.getElementById('how').closest('details').open = true;
            const set = (id, value) => { const e = document.getElementById(id); e.value = value;
                e.dispatchEvent(new Event('change')); };
            set('old', 'cat'); set('how', 'merge'); set('into', 'dog');
            document.getElementById('change').requestSubmit(); return true; })()""")
        assert merged
        page.until(lambda: sorted(page.labels) == ["cow", "dog"])
        driver.find_element("id", "export").click()
        page.until(
            lambda: "The table is in" in page("document.getElementById('outcome').textContent")
        )
        assert page.errors() == []
        said, code = program.interrupt()
        assert code == 0
        assert "40 labels are in" in said

    with file.with_name("docs.csv.labels.csv").open(newline="") as source:
        table = [row for row in csv.DictReader(source) if row["label"]]
    assert len(table) == 40
    assert {row["labeled_by"] for row in table} == {"ann"}
    both = {"cat": "dog", "dog": "dog", "cow": "cow"}
    assert all(row["label"] == both[truth(row["text"])] for row in table)
    assert len(State.of({}, [], Journal(journal).events).answers) == 41
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_it_fits_and_speaks_and_shows_markup_as_text(driver, file):
    with Program(file) as program:
        page = Page(driver, program.address, (390, 844))
        seen = False
        for _ in range(6):
            seen = seen or NASTY in page("document.getElementById('shown').textContent")
            page.answer()
        page.press("t", NASTY, "\ue007")
        page.until(lambda: NASTY in page.labels)
        assert seen
        assert page("document.querySelectorAll('img').length") == 0
        assert page("document.documentElement.scrollWidth") <= 390
        # everything that can be used has a name, and everything that says something a role
        unnamed = page("""[...document.querySelectorAll('button, input, select')].filter(e =>
            e.offsetParent && !(e.textContent.trim() || e.labels?.length ||
            e.getAttribute('aria-label'))).map(e => e.id || e.outerHTML)""")
        assert unnamed == []
        for selector in ("main", "aside[aria-label]", "[role=status][aria-live]", "[role=alert]",
                         "[role=progressbar][aria-valuenow]", "#labels[role=group][aria-label]",
                         "section[aria-labelledby]", "html[lang]"):  # fmt: skip
            assert page(f"document.querySelector({json.dumps(selector)}) !== null"), selector
        assert page("document.getElementById('said').textContent").endswith("Next sample.")
        # by the keyboard alone: tabs reach all that can be pressed
        reached = set()
        for _ in range(25):
            page.press("\ue004")
            reached.add(page("document.activeElement.id"))
        assert {"undo", "export", "finish", "name", "none", "skip", "note"} <= reached
        assert page.errors() == []


HOLD = """(() => {
    const fetched = window.fetch;
    window.held = [];
    window.fetch = (address, ...how) => address !== '/api/status' ? fetched(address, ...how) :
        fetched(address, ...how).then(found => new Promise(goOn => {
            window.held.push(() => goOn(found)); }));
    return true; })()"""


def test_what_was_asked_before_an_answer_is_not_shown_after_it(driver, file):
    with Program(file) as program:
        page = Page(driver, program.address)
        page.answer()
        assert page(HOLD)
        page.until(lambda: page("window.held.length") == 1)  # it knows of one answer
        for _ in range(5):
            page.answer()
        labels = page.labels
        assert len(labels) > 1
        assert page("window.held.pop()() || true")
        page.until(lambda: page("window.held.length") == 1)  # the one before was dealt with
        assert page.counts() == 6
        assert page.labels == labels
        assert page.errors() == []
