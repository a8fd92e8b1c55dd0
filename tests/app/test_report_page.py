"""The report page: what is in it, what is not, and how it behaves in a browser."""

import base64
import hashlib
import html.parser
import itertools
import json
import os
import re
import shutil
from importlib.resources import files

import numpy as np
import pytest

from marginparts.app.report._page import SECTIONS, render
from report_payloads import NASTY, image_payload, least_payload, nasty_payload, text_payload

PAYLOADS = {
    "text": text_payload, "image": image_payload, "least": least_payload, "nasty": nasty_payload,
}  # fmt: skip
SIZES = {"phone": (360, 740), "tablet": (768, 1024), "desktop": (1280, 900)}


class Tags(html.parser.HTMLParser):
    """The tags of a page with their attributes, and the text in each script and style."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.inside, self.texts = [], None, []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag if tag in {"script", "style", "title"} else self.inside
        if self.inside == tag:
            self.texts.append((tag, ""))

    def handle_endtag(self, tag):
        self.inside = None if tag == self.inside else self.inside

    def handle_data(self, data):
        if self.inside:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self, tag):
        return [text for name, text in self.texts if name == tag]


def embedded(page):
    return json.loads(Tags(page).text("script")[0])


# ---- without a browser ----


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_data_arrive_whole(name):
    payload = PAYLOADS[name]()
    assert embedded(render(payload)) == payload


@pytest.mark.parametrize("name", PAYLOADS)
def test_nothing_is_loaded_from_anywhere(name):
    page = Tags(render(PAYLOADS[name]()))
    assert not page.named("link")
    assert not page.named("img")
    for _, attributes in page.tags:
        assert not {"src", "srcset", "style", "action"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
    css = page.text("style")[0]
    assert "url(" not in css
    assert "@import" not in css


def test_the_policy_allows_the_own_style_and_script_only():
    page = Tags(render(least_payload()))
    policy = next(meta["content"] for meta in page.named("meta") if "http-equiv" in meta)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    hashed = {
        kind: "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for kind, text in [("style", page.text("style")[0]), ("script", page.text("script")[1])]
    }
    assert rules == {
        "default-src": "'none'",
        "style-src": hashed["style"],
        "script-src": hashed["script"],
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_script_makes_no_markup_from_text():
    script = (files("marginparts.app.report") / "page.js").read_text("utf-8")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert word not in script
    assert "</script" not in script
    assert "</style" not in (files("marginparts.app.report") / "page.css").read_text("utf-8")


def test_texts_cannot_break_out():
    clean, nasty = Tags(render(text_payload())), Tags(render(nasty_payload()))
    assert nasty.tags[6:] == clean.tags[6:]
    assert [tag for tag, _ in nasty.tags] == [tag for tag, _ in clean.tags]
    assert nasty.text("title") == [f"incidents.csv {NASTY}"]
    assert not re.search(
        "[<>&\u2028]", render(nasty_payload()).split('id="data">')[1].split("</")[0]
    )


def test_a_text_cannot_fill_a_slot():
    assert render({"title": "{{script}}"}).count("use strict") == 1


@pytest.mark.parametrize("name", ["text", "image", "least"])
def test_sections_without_data_are_left_out(name):
    payload = PAYLOADS[name]()
    page = Tags(render(payload))
    shown = [section["id"] for section in page.named("section")]
    assert shown == [section for section in SECTIONS if payload.get(section)]
    contents = [link["href"][1:] for link in page.named("a") if link["href"] != "#main"]
    assert contents == (shown if len(shown) > 1 else [])


@pytest.mark.parametrize(
    ("section", "empty"),
    [
        ("headline", {"metric": "accuracy", "rows": [], "sentence": None, "warning": None}),
        ("loss", {"iteration": [], "loss": [], "stop": "It stopped."}),
        ("choice", {"metric": "accuracy", "chosen": {}, "trials": [], "sentence": ""}),
        ("examples", {"certain": [], "doubtful": []}),
        ("margins", []),
        ("path", None),
    ],
)
def test_an_empty_section_is_left_out(section, empty):
    page = Tags(render(text_payload() | {section: empty}))
    assert [s["id"] for s in page.named("section")] == [s for s in SECTIONS if s != section]
    assert f"#{section}" not in [link["href"] for link in page.named("a")]


def test_an_empty_payload_is_a_page():
    page = Tags(render({}))
    assert page.text("title") == ["Report"]
    assert not page.named("section")


def test_rendering_is_deterministic_and_leaves_the_payload_alone():
    payload = text_payload()
    assert render(payload) == render(text_payload())
    assert payload == text_payload()


def test_numbers_of_numpy_and_numbers_that_are_none():
    part = {
        "share": np.float32(0.5),
        "top": [["a", np.float64("nan")]],
        "classes": np.array([[0, 1]]),
    }
    loss = {"iteration": np.arange(2), "loss": np.array([np.inf, 2.0])}
    found = embedded(render({"parts": [part], "loss": loss, "n": np.int64(3)}))
    assert found == {
        "parts": [{"share": 0.5, "top": [["a", None]], "classes": [[0, 1]]}],
        "loss": {"iteration": [0, 1], "loss": [None, 2.0]},
        "n": 3,
    }


def test_odd_characters_survive_the_file(tmp_path):
    title = "caf\u00e9 \u2028 \U0001f680 \ud800"  # the last is half a character
    page = render({"title": "x", "subtitle": None, "note": title})
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    assert embedded((tmp_path / "page.html").read_text(encoding="utf-8"))["note"] == title


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_contrast_is_enough_to_read(dark):
    css = (files("marginparts.app.report") / "page.css").read_text("utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)
    color = {name: both[dark] for name, *both in pairs}
    grounds = ["paper", "card"]
    inks = ["ink", "soft", "for", "against-ink", "green", "purple"]
    texts = [
        *itertools.product(inks, grounds),
        ("for", "for-tint"),
        ("against-ink", "against-tint"),
    ]
    assert not {pair for pair in texts if contrast(color[pair[0]], color[pair[1]]) < 4.5}
    shapes = itertools.product(["for", "against", "strong-line"], grounds)
    assert not {pair for pair in shapes if contrast(color[pair[0]], color[pair[1]]) < 3}
    # images are drawn in the ink of light mode, and inverted in dark mode
    assert int(pairs[2][1][1:], 16) + int(pairs[2][2][1:], 16) == 0xFFFFFF


# ---- in a browser ----


def find_program(*names):
    return next(filter(None, map(shutil.which, names)), None)


class Page:
    """A page in a browser, at a size and in a color scheme."""

    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder

    def open(self, payload, size="desktop", scheme="light", motion="reduce"):
        file = self.folder / "report.html"
        file.write_text(render(payload), encoding="utf-8")
        width, height = SIZES[size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get_log("browser")  # forget what other pages said
        self.driver.get(file.as_uri())
        # charts are drawn once the layout is known
        self.driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 0))")
        return self

    def __call__(self, script, *arguments):
        return self.driver.execute_script(f"return {script}", *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector):
        """The texts of what is shown."""
        script = "[...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility())"
        return self(f"{script}.map((e) => (e.innerText ?? e.textContent).trim())", selector)

    def count(self, selector):
        return len(self.texts(selector))

    def pick(self, selector, text):
        select = self.find(selector)
        options = select.find_elements("tag name", "option")
        next(option for option in options if option.text == text).click()

    def click(self, selector):
        self("arguments[0].scrollIntoView({block: 'center'})", self.find(selector))
        self.find(selector).click()

    def keys(self, selector, *keys):
        self.find(selector).send_keys(*keys)

    def errors(self):
        return self.driver.get_log("browser")

    def overflow(self):
        return self("document.documentElement.scrollWidth - innerWidth")


@pytest.fixture(scope="module")
def driver():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    browser = find_program("chromium", "chromium-browser", "google-chrome")
    chromedriver = find_program("chromedriver")
    if not browser or not chromedriver:
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(chromedriver, log_output=os.devnull))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(driver, tmp_path_factory):
    return Page(driver, tmp_path_factory.mktemp("report"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAYLOADS)
def test_pages_open_without_errors_and_fit(page, name, size, scheme):
    page.open(PAYLOADS[name](), size, scheme)
    assert page.errors() == []
    assert page.overflow() <= 0
    background = page("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(252, 252, 250)", "dark": "rgb(20, 23, 26)"}[scheme]
    # every section has something to show
    for section in page.all("section"):
        assert section.size["height"] > 100


def test_gaps_in_the_data_are_shown_as_gaps(page):
    nothing = {"top": None, "image": None}
    margin = {"plus": nothing, "plus_rebuilt": None, "minus": nothing, "kept": [None, None]}
    trial = {"n_components": 8, "lam": 0.0, "score": None, "error": None}
    page.open(
        {
            "headline": {
                "rows": [{"name": "a", "score": None}, {"name": "b", "score": float("nan")}]
            },
            "parts": [{}, {"top": [["a", None]], "classes": [[7, None]]}],
            "classes": [{"name": "a"}, {"name": "b", "parts": [[9, 0.5]]}],
            "margins": [{"name": name, **margin} for name in "abc"],
            "loss": {"loss": [1e9, 1e9 + 1e-6, None]},
            "choice": {"trials": [trial, {**trial, "score": 0.5}, {"score": 0.4}]},
            "settings": [["parts", None]],
            "examples": {"doubtful": [{"name": "row 1"}]},
            "path": [{"lam": 0.0, "parts": [{}]}, {"lam": 1.0, "parts": [{"top": [["a", 1.0]]}]}],
        }
    )
    assert page.errors() == []
    assert page.count("section") == len(SECTIONS)
    assert page.texts("#headline tbody .number") == ["\u2013", "\u2013"]
    assert page.texts("[role=tab]") == ["Most doubtful"]
    assert not {"NaN", "undefined", "null"} & set(
        re.findall(r"\w+", page("document.body.innerText"))
    )


def test_many_parts_and_classes(page):
    payload = text_payload()
    payload["parts"] = (6 * payload["parts"])[:256]
    payload["classes"] = (5 * payload["classes"])[:100]
    payload["margins"] = (9 * payload["margins"])[:190]
    page.open(payload)
    assert page.errors() == []
    assert page.count("#classes tbody tr") == 1  # one class is picked
    page.pick("#classes select", "all 100 classes")
    assert page.count("#classes tbody tr") == 100
    page.click('#parts [data-slot="more"]')
    assert page.count("#parts .card") == 256
    assert page.overflow() <= 0


def test_nasty_text_stays_text(page):
    page.open(nasty_payload())
    assert page.driver.title == f"incidents.csv {NASTY}"
    assert page("document.images.length") == 0
    assert page("document.scripts.length") == 2
    assert NASTY.split("\u2028")[0] in page.find(".lead").text
    assert page("document.querySelector('h1').textContent").endswith(NASTY)
    assert page("document.querySelector('#examples tbody th').textContent").endswith(NASTY)
    assert page("document.querySelector('.bars .cut').textContent").endswith(NASTY)


def test_what_gets_into_the_page_all_the_same_may_not_run_or_fetch(page):
    """The policy is the second wall: were a text taken for markup, nothing would come of it."""
    page.open(nasty_payload())
    page.driver.execute_script(
        """
        window.ran = [];
        const script = document.createElement('script');
        script.textContent = 'window.ran.push("script")';
        const handler = document.createElement('p');
        handler.innerHTML = '<img src="data:image/png;base64,AA" onerror="window.ran.push(1)">';
        const style = document.createElement('style');
        style.textContent = 'body { outline: 7px solid red }';
        document.body.append(script, handler, style);
        """
    )
    page.driver.execute_async_script("setTimeout(arguments[0], 300)")
    assert page("window.ran") == []
    assert page("getComputedStyle(document.body).outlineWidth") != "7px"
    said = " ".join(entry["message"] for entry in page.driver.get_log("browser"))
    assert "Content Security Policy" in said


def test_the_theme_can_be_changed(page):
    page.open(image_payload(), scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    inversion = "getComputedStyle(document.querySelector('canvas')).filter"
    assert (page(ground), page(inversion)) == ("rgb(20, 23, 26)", "invert(1)")
    for label, color, filtered in [
        ("Light colors", "rgb(252, 252, 250)", "invert(0)"),
        ("Dark colors", "rgb(20, 23, 26)", "invert(1)"),
    ]:
        assert page.find("#theme").text == label
        page.click("#theme")
        assert (page(ground), page(inversion)) == (color, filtered)


def test_scores_are_drawn_on_one_scale(page):
    page.open(text_payload())
    script = """[...document.querySelectorAll('#headline .dot')]
        .map((dot) => dot.getBoundingClientRect()).map((box) => box.x + box.width / 2)"""
    ours, svm, nmf = page(script)
    assert (svm - nmf) / (ours - nmf) == pytest.approx((0.552 - 0.487) / (0.612 - 0.487), abs=0.01)
    assert page.texts("#headline tbody .number")[0] == "0.612 \u00b1 0.018"
    assert page.texts("#headline .warning")[0].startswith("Caution. Three labels")


def test_no_more_parts_than_can_be_looked_at_are_shown_first(page):
    page.open(text_payload())
    assert page.count("#parts .card") == 24
    assert page.texts("#parts output") == ["24 of 44 parts"]
    page.click('#parts [data-slot="more"]')
    assert page.count("#parts .card") == 44
    assert page.count('#parts [data-slot="more"]') == 0


def test_where_parts_are_from_and_what_is_their_own(page):
    page.open(text_payload())
    assert page.texts("#parts .card-head").count("Part 1") == 0
    assert sum("from the prior" in head for head in page.texts("#parts .card-head")) == 2
    first = page.texts("#parts .card-head")[0]
    assert all(said in first for said in ("Part 1", "fixed", "stability 0.97"))
    shaky = page.texts("#parts .card-head .against")
    assert shaky == ["stability 0.87", "stability 0.82", "stability 0.77"]
    own = [text for text in page.texts("#parts .also") if text.startswith("Its own")]
    assert own == ["Its own: propeller \u00d74, runway \u00d71.25"] * 5
    page.keys("#parts input", "propeller")
    assert page.count("#parts .card") == 5
    assert page.texts("#settings tbody tr")[1].split("\t")[-1].endswith("strength 1")


def test_parts_are_found_by_word(page):
    payload = text_payload()
    page.open(payload)
    page.keys("#parts input", "TURB")
    having = [
        f"Part {k + 1}"
        for k, part in enumerate(payload["parts"])
        if any("turb" in word for word, _ in part["top"])
    ]
    assert page.texts("#parts .card h3") == having
    assert set(page.texts("#parts .hit")) <= {"turbine", "turbulence"}
    assert page.count("#parts .hit") >= len(having)
    page.keys("#parts input", "xyz")
    assert page.texts("#parts output") == ["0 of 44 parts"]


def test_parts_are_found_by_class_strongest_first(page):
    payload = text_payload()
    page.open(payload)
    page.pick("#parts select", "weather")
    weather = next(c for c, group in enumerate(payload["classes"]) if group["name"] == "weather")
    weights = {
        f"Part {k + 1}": dict(part["classes"])[weather]
        for k, part in enumerate(payload["parts"])
        if weather in dict(part["classes"])
    }
    assert page.texts("#parts .card h3") == sorted(weights, key=weights.get, reverse=True)
    page.pick("#parts select", "any")
    assert page.texts("#parts .card h3")[:2] == ["Part 1", "Part 2"]


def test_a_part_leads_to_its_card_even_when_it_is_hidden(page):
    payload = text_payload()
    payload["classes"][0]["parts"] = [[40, 0.5]]
    page.open(payload)
    page.keys("#parts input", "turb")
    page.click("#classes .vote button")
    assert page.texts(".card.lit h3") == ["Part 41"]
    assert page("document.activeElement.id") == "part-40"
    top = page("document.activeElement.getBoundingClientRect().top")
    assert 0 < top < SIZES["desktop"][1]


def test_bars_of_classes_go_both_ways(page):
    payload = text_payload()
    payload["classes"] = [{"name": "a", "n_labeled": 3, "parts": [[0, -2.0], [1, 1.0]]}]
    page.open(payload)
    script = """[...document.querySelectorAll('.axis')].map((axis) => {
        const [outer, inner] = [axis, axis.firstChild].map((e) => e.getBoundingClientRect());
        return [(inner.left - outer.left) / outer.width, (inner.right - outer.left) / outer.width];
    })"""
    against, speaks_for = page(script)
    assert against == pytest.approx([0, 0.5], abs=0.01)
    assert speaks_for == pytest.approx([0.5, 0.75], abs=0.01)
    assert page.texts(".vote > span:not(.cut)") == ["\u22122.00", "+1.00"]
    assert page.count("#classes select") == 0


def test_one_class_can_be_picked(page):
    page.open(text_payload())
    assert page.count("#classes tbody tr") == 22
    page.pick("#classes select", "fuel")
    assert page.texts("#classes tbody th") == ["fuel"]


def test_margins_are_picked_by_classifier(page):
    payload = text_payload()
    page.open(payload)
    page.pick("#margins select", "icing")
    margin = next(m for m in payload["margins"] if m["name"] == "icing")
    assert page.texts(".sides .plus tbody th") == [word for word, _ in margin["plus"]["top"]]
    assert page.texts(".sides h3 span:last-child") == [
        f"{kept:.2f} kept" for kept in margin["kept"]
    ]
    large = (
        "[...document.querySelectorAll('#margins circle[r=\"7\"] title')].map((t) => t.textContent)"
    )
    assert page(large) == [f"icing: {kept:.3f}" for kept in margin["kept"]]
    margin["span"] = 0.874
    page.open(payload)
    page.pick("#margins select", "icing")
    (said,) = page.texts("#margins [data-slot=span]")
    assert said.startswith("87 % of the hyperplane")


def test_words_that_only_one_side_lists_are_shown_once(page):
    one = {"top": [["a", 2.0], ["b", 1.0]], "image": None}
    other = {"top": [["b", 0.5], ["c", 0.25]], "image": None}
    margin = {"name": "m", "plus": one, "plus_rebuilt": other, "minus": one, "minus_rebuilt": other}
    page.open({"title": "t", "kind": "text", "margins": [margin]})
    assert page.texts(".plus tbody th") == ["a", "b", "c"]
    assert page.texts(".plus tbody .number") == ["2.00", "", "1.00", "0.50", "", "0.25"]
    assert page.errors() == []


def test_the_loss_can_be_read_with_the_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    page.open(text_payload())
    assert page.texts("#loss output") == ["iteration 590: loss 191,566"]
    page.keys("#loss svg", Keys.HOME)
    assert page.texts("#loss output") == ["iteration 0: loss 2,670,000"]
    page.keys("#loss svg", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.texts("#loss output")[0].startswith("iteration 20:")
    assert page.find("#loss svg").get_attribute("aria-valuetext").startswith("iteration 20:")


def test_the_choice_is_marked_and_dropped_trials_are_hollow(page):
    payload = text_payload()
    page.open(payload)
    assert page.count("#choice .chosen") == 1
    assert page.count("#choice .series path") == 4
    cells = {(t["n_components"], t["lam"]): t["dropped"] for t in payload["choice"]["trials"]}
    assert page.count("#choice .hollow") == sum(cells.values())
    assert page.count("#choice .point") == len(cells) - sum(cells.values())


def test_the_table_of_trials_can_be_sorted(page):
    payload = text_payload()
    page.open(payload)
    page.click("#choice summary")
    assert page.count("#choice tbody tr") == len(payload["choice"]["trials"])
    assert page.count("#choice .chosen-row") == 1
    heads = page.texts("#choice th[scope=col]")
    column = heads.index("F-measure") + 1
    head = f"#choice thead th:nth-child({column})"
    scores = sorted(trial["score"] for trial in payload["choice"]["trials"])
    for order, expected in [("descending", scores[::-1]), ("ascending", scores)]:
        page.click(f"{head} button")
        assert page.find(head).get_attribute("aria-sort") == order
        shown = page.texts(f"#choice tbody td:nth-child({column})")
        assert [float(text) for text in shown] == pytest.approx(expected, abs=6e-4)


def test_examples_have_two_tabs(page):
    from selenium.webdriver.common.keys import Keys

    payload = text_payload()
    names = {
        kind: [example["name"] for example in payload["examples"][kind]]
        for kind in payload["examples"]
    }
    page.open(payload)
    assert page.texts("#examples tbody th") == names["certain"]
    page.click("#tab-doubtful")
    assert page.texts("#examples tbody th") == names["doubtful"]
    assert page.find("#tab-doubtful").get_attribute("aria-selected") == "true"
    page.keys("#tab-doubtful", Keys.ARROW_RIGHT)
    assert page.texts("#examples tbody th") == names["certain"]
    assert page("document.activeElement.id") == "tab-certain"


@pytest.mark.parametrize("size", ["phone", "desktop"])
def test_examples_can_be_sorted_and_read(page, size):
    payload = text_payload()
    page.open(payload, size)
    assert page.texts("#examples tbody details p") == []
    page.click("#examples summary")
    assert page.texts("#examples tbody details p")[0].endswith("filed this report the next day.")
    buttons = [b for b in page.all("#panel-certain thead button") if b.text == "Score"]
    buttons[0].click()
    rows = sorted(payload["examples"]["certain"], key=lambda example: -example["score"])
    assert page.texts("#examples tbody th") == [example["name"] for example in rows]
    assert page.overflow() <= 0


def test_labels_that_differ_from_the_known_ones_are_marked(page):
    payload = text_payload()
    page.open(payload)
    wrong = [
        ", ".join(example["known"])
        for example in payload["examples"]["certain"]
        if example["known"] and set(example["known"]) != set(example["labels"])
    ]
    assert wrong
    assert page.texts("#examples .differs") == wrong


def pixels(page, selector):
    script = (
        "[...document.querySelector(arguments[0]).getContext('2d').getImageData(0, 0, 28, 28).data]"
    )
    return np.array(page(script, selector)).reshape(28, 28, 4)[:, :, 3]


def test_the_slider_changes_the_images(page):
    from selenium.webdriver.common.keys import Keys

    payload = image_payload()
    page.open(payload)

    def expected(step):
        image = payload["path"][step]["parts"][0]["image"]
        return np.frombuffer(base64.b64decode(image), np.uint8).reshape(28, 28)

    assert page.count("#path canvas") == 36
    assert page.texts("#path output") == ["lam = 3, accuracy 0.960"]  # it starts at the chosen lam
    np.testing.assert_array_equal(pixels(page, "#path canvas"), expected(5))
    page.keys("#lam", Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.texts("#path output") == ["lam = 0.3, accuracy 0.952"]
    np.testing.assert_array_equal(pixels(page, "#path canvas"), expected(3))
    page.keys("#lam", Keys.HOME)
    assert page.texts("#path output") == ["lam = 0"]
    np.testing.assert_array_equal(pixels(page, "#path canvas"), expected(0))


def test_the_slider_sets_off_new_words(page):
    from selenium.webdriver.common.keys import Keys

    payload = text_payload()
    page.open(payload)
    page.keys("#lam", Keys.HOME)
    assert page.count("#path .card .new") == 0
    page.keys("#lam", Keys.ARROW_RIGHT)
    before, after = ([w for w, _ in payload["path"][i]["parts"][0]["top"]] for i in (0, 1))
    card = "#path .card:first-child"
    assert page.texts(f"{card} ol li") == after[:8]
    assert page.texts(f"{card} .new") == [word for word in after[:8] if word not in before]


def test_the_slider_plays(page):
    page.open(text_payload())
    page("(document.querySelector('#lam').value = 5)")
    page.click('#path [data-slot="play"]')
    assert page.texts("#path output") == ["lam = 30, F-measure 0.680"]
    assert page.texts('#path [data-slot="play"]') == ["Pause"]
    page.click('#path [data-slot="play"]')
    assert page.texts('#path [data-slot="play"]') == ["Play"]


def test_print_shows_all_examples_and_no_controls(page):
    page.open(text_payload())
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.count("#examples tbody tr") == 16
        assert page.count("nav, .controls, #theme") == 0
        assert page("getComputedStyle(document.documentElement).colorScheme") == "light"
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_every_control_has_a_name_and_every_table_heads(page):
    page.open(text_payload())
    script = """[...document.querySelectorAll('input, select, button, canvas, svg')]
        .filter((e) => e.checkVisibility() && !e.ariaHidden)
        .filter((e) => !(e.labels?.length || e.textContent.trim() || e.ariaLabel))
        .map((e) => e.outerHTML)"""
    assert page(script) == []
    assert page("[...document.querySelectorAll('th')].every((head) => head.scope)")
    assert page("[...document.querySelectorAll('table')].every((table) => table.caption)")
    levels = page("[...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
