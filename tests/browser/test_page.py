"""The report in a real browser: loads offline without a complaint, answers clicks, keys and filters, runs no name.

Needs Chromium with its driver (Debian: ``apt-get install chromium chromium-driver``) and selenium.
"""

import base64
import json
import os
import re
import shutil
import time
import warnings
import zlib
from itertools import pairwise

import numpy as np
import pytest

webdriver = pytest.importorskip("selenium.webdriver")

from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

import modelweld  # noqa: E402
from modelweld.demo.simulate import sparse  # noqa: E402
from modelweld.inputs.notebook import spell  # noqa: E402
from modelweld.kinds.mixture import mixture  # noqa: E402
from modelweld.report import numbers_of, write_report  # noqa: E402
from test_report import FUSIONS, HOSTILE  # noqa: E402

pytestmark = pytest.mark.browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads):
    if CHROMIUM is None or DRIVER is None:
        pytest.fail("needs chromium and chromedriver: make chromium")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--window-size=1200,900", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        yield driver
        driver.quit()


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """Open the report of a fusion."""

    def open_page(fusion):
        path = write_report(fusion, tmp_path_factory.mktemp("report") / "report.html")
        browser.get(path.as_uri())
        return browser

    return open_page


@pytest.fixture(scope="module")
def fusion():
    return modelweld.fuse(sparse(8, 5, 4, 0.3, 3.0, 1.0, 1.0, seed=2).values)


def rows(browser, table):
    return browser.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr")


def find(browser, name):
    return browser.find_element(By.ID, name)


def fine(browser):
    """Drawn to the end, no message in the console, nothing asked of a network."""
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("name", FUSIONS)
def test_every_kind_loads_offline_without_a_complaint(opened, name):
    fine(opened(FUSIONS[name]()))


def test_clicking_an_atom_shows_its_members(opened, fusion):
    browser = opened(fusion)
    assert not find(browser, "detail").is_displayed()
    button = rows(browser, "atoms")[1].find_element(By.TAG_NAME, "button")
    button.click()
    assert find(browser, "detail-title").text == "Group 1"
    assert len(rows(browser, "members")) == int((fusion.matching.stacked_labels == 1).sum())
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not find(browser, "detail").is_displayed()
    fine(browser)


def test_a_value_on_the_page_is_the_fusions(opened, fusion):
    browser = opened(fusion)
    heads = [head.text for head in browser.find_elements(By.CSS_SELECTOR, "#atoms thead th")]
    shown = rows(browser, "atoms")[0].find_elements(By.CSS_SELECTOR, "th, td")[heads.index("dim 0")].text.split("\n")
    table, intervals = fusion.table(), fusion.posterior.atom_intervals(0.9)
    assert float(shown[0]) == round(table.means[0, 0], table.decimals[0])
    low, high = shown[-1].split(" to ")
    assert np.allclose(
        [float(low), float(high)], [intervals.low[0, 0], intervals.high[0, 0]], atol=0.51 * 10.0 ** -table.decimals[0]
    )


def test_in_how_many_sites_a_group_may_be_stands_under_the_number(opened):
    rng = np.random.default_rng(3)
    fusion = modelweld.fuse([rng.normal(0, 3, (3, 2)) + rng.normal(0, 1.0, (3, 2)) for _ in range(4)])
    browser, found = opened(fusion), fusion.posterior.sharing(0.9)
    for k, row in enumerate(rows(browser, "atoms")):
        number, *interval = row.find_elements(By.TAG_NAME, "td")[0].text.split("\n")
        certain = found.low[k] == found.high[k] == found.sites[k]
        ends = f"{found.low[k]}" if found.low[k] == found.high[k] else f"{found.low[k]} to {found.high[k]}"
        assert (int(number), interval) == (found.sites[k], [] if certain else [ends])
    rows(browser, "atoms")[0].find_element(By.TAG_NAME, "button").click()
    assert f"Expected at {found.expected[0]:.3g}," in find(browser, "detail-body").text
    fine(browser)


def test_clicking_the_matrix_opens_the_atom_there(opened, fusion):
    browser = opened(fusion)
    Select(find(browser, "order")).select_by_value("given")
    browser.execute_script(
        "const b = $('matrix').getBoundingClientRect();"
        "$('matrix').dispatchEvent(new MouseEvent('click', {clientX: b.left + M.left + 2.5 * M.w,"
        " clientY: b.top + M.top + 0.5 * M.h}))"
    )
    assert find(browser, "detail-title").text == "Group 2"


def test_the_matrix_answers_keys(opened, fusion):
    browser = opened(fusion)
    Select(find(browser, "order")).select_by_value("given")
    find(browser, "matrix").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    held = fusion.matching.presence[1, 1]
    assert find(browser, "status").text.startswith("1, group 1")
    assert ("not held" in find(browser, "status").text) == (not held)
    find(browser, "matrix").send_keys(Keys.ENTER)
    assert find(browser, "detail-title").text == "Group 1"


def mouse(browser, canvas, x, y):
    """Move the mouse to a place of a canvas, given in the page's own words."""
    browser.execute_script(
        f"const b = $('{canvas}').getBoundingClientRect();"
        f"$('{canvas}').dispatchEvent(new MouseEvent('mousemove', {{clientX: b.left + {x}, clientY: b.top + {y}}}))"
    )
    return find(browser, "tip")


def test_the_matrix_tells_what_is_under_the_mouse(opened, fusion):
    browser = opened(fusion)
    Select(find(browser, "order")).select_by_value("given")
    for j, k in ((0, 0), (2, 1), (4, 3)):
        tip = mouse(browser, "matrix", f"M.left + {k + 0.5} * M.w", f"M.top + {j + 0.5} * M.h")
        assert tip.is_displayed()
        assert tip.text.startswith(f"{j}, group {k}")
        assert ("not held" in tip.text) == (not fusion.matching.presence[j, k])
    assert not mouse(browser, "matrix", "2", "M.top + 2").is_displayed()  # among the names of sites


def test_the_map_tells_what_is_under_the_mouse(opened, fusion):
    browser = opened(fusion)
    tip = mouse(browser, "map", "P.atoms[2][0]", "P.atoms[2][1]")
    assert tip.is_displayed()
    assert re.match(r"group \d+", tip.text)
    browser.execute_script("$('map').dispatchEvent(new MouseEvent('mouseleave', {}))")
    assert not tip.is_displayed()


def test_every_number_is_saved_as_json(opened, fusion, downloads):
    browser = opened(fusion)
    find(browser, "save").click()
    saved = downloads / "fusion.json"
    until = time.monotonic() + 10
    while not saved.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert json.loads(saved.read_text()) == json.loads(json.dumps(numbers_of(fusion)))
    saved.unlink()


def test_atoms_open_by_tab_and_enter(opened, fusion):
    browser = opened(fusion)
    browser.execute_script("$('atom-order').focus()")
    seen = []
    for _ in range(5):  # the table's own frame, a word that is explained, then its first groups
        browser.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(browser.switch_to.active_element.get_attribute("aria-label"))
    assert seen[2:] == [f"Show members of group {k}" for k in range(3)]
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert find(browser, "detail-title").text == "Group 2"
    assert browser.switch_to.active_element.get_attribute("id") == "detail"
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("id") == "close"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert not find(browser, "detail").is_displayed()
    assert browser.switch_to.active_element.get_attribute("aria-label") == "Show members of group 2"


def test_states_of_a_chain_open_by_keys(opened):
    browser = opened(FUSIONS["hmm"]())
    node = browser.find_element(By.CSS_SELECTOR, "#picture [role=button]")
    browser.execute_script("arguments[0].focus()", node)
    node.send_keys(Keys.ENTER)
    assert find(browser, "detail-title").text.startswith("State ")


UNNAMED = """
const named = (n) => n.getAttribute("aria-label") || n.textContent.trim() || n.closest("label")
  || (n.getAttribute("aria-labelledby") || "").split(" ").some((id) => id && $(id) && $(id).textContent.trim());
return [...document.querySelectorAll("button, input, select, canvas, svg, [role], section, nav, aside")]
  .filter((n) => !n.closest("[hidden]") && n.getAttribute("aria-hidden") !== "true" && n.id !== "status" && !named(n))
  .map((n) => n.outerHTML.slice(0, 90));
"""


@pytest.mark.parametrize("name", ["arrays", "hmm", "topics", "several sets"])
def test_everything_one_can_reach_has_a_name(opened, name):
    browser = opened(FUSIONS[name]())
    rows(browser, "atoms")[0].find_element(By.TAG_NAME, "button").click()
    assert browser.execute_script(UNNAMED) == []
    for table in ("atoms", "sites"):
        heads = browser.find_elements(By.CSS_SELECTOR, f"#{table} thead th")
        assert all(head.get_attribute("scope") == "col" for head in heads)
        assert browser.find_element(By.CSS_SELECTOR, f"#{table} tbody th").get_attribute("scope") == "row"
    levels = [int(h.tag_name[1]) for h in browser.find_elements(By.CSS_SELECTOR, "h1, h2, h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


@pytest.mark.parametrize("name", ["arrays", "topics"])
def test_printing_gives_pages_with_content(opened, name):
    fusion = FUSIONS[name]()
    browser = opened(fusion)
    data = base64.b64decode(browser.print_page())
    assert data.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", data))
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    drawn = [zlib.decompressobj().decompress(s) for s in streams if s[:1] == b"x"]
    written = [s for s in drawn if b" Tf" in s and (b" Tj" in s or b" TJ" in s)]
    assert 1 <= pages <= 12
    assert len(written) >= pages  # every page has text on it
    rings = sum(s.count(b" c\n") for s in drawn)  # the map is printed too: a ring is four curves
    assert rings >= 4 * len(fusion.counts)


def test_filtering_by_site_leaves_its_atoms(opened, fusion):
    browser = opened(fusion)
    find(browser, "site").send_keys("3")
    assert len(rows(browser, "atoms")) == len(set(fusion.labels[3].tolist()))
    assert len(rows(browser, "sites")) == 1
    find(browser, "clear").click()
    assert len(rows(browser, "atoms")) == len(fusion.counts)
    fine(browser)


def test_sites_are_sorted_by_a_column(opened, fusion):
    browser = opened(fusion)
    find(browser, "sort-size").click()
    sizes = [int(row.find_elements(By.TAG_NAME, "td")[0].text) for row in rows(browser, "sites")]
    assert sizes == sorted((len(labels) for labels in fusion.labels), reverse=True)
    assert browser.switch_to.active_element.get_attribute("id") == "sort-size"


def test_a_hostile_name_is_shown_and_does_nothing(opened):
    browser = opened(FUSIONS["hostile names"]())
    names = [row.find_element(By.TAG_NAME, "th").get_attribute("textContent") for row in rows(browser, "sites")]
    assert HOSTILE in names
    rows(browser, "atoms")[0].find_element(By.TAG_NAME, "button").click()
    assert browser.execute_script("return [document.images.length, document.scripts.length]") == [0, 2]
    fine(browser)


def test_another_set_is_chosen(opened):
    fusion = FUSIONS["several sets"]()
    browser = opened(fusion)
    Select(find(browser, "set")).select_by_visible_text("h1")
    assert len(rows(browser, "atoms")) == len(fusion.matchings["h1"].counts)
    fine(browser)


def mixtures(J):
    rng = np.random.default_rng(0)
    centres = np.array([[50.0, 3.0, 100.0], [60.0, 9.0, 100.0], [40.0, 6.0, 101.0]])
    sites = [
        mixture(centres + rng.normal(0, 0.3, (3, 3)), np.ones((3, 3)), [40, 50, 60], counted=True, site=f"clinic {j}",
                features=["age", "nodes", "dose"], facts={"units": {"age": "years"}})
        for j in range(J)
    ]  # fmt: skip
    return modelweld.fuse(sites)


@pytest.fixture(scope="module")
def clinics():
    return mixtures(5)


def test_patients_are_counted_at_every_site(opened, clinics):
    browser = opened(clinics)
    heads = [head.text.split("\n")[0] for head in browser.find_elements(By.CSS_SELECTOR, "#atoms thead th")]
    assert heads[:3] == ["Group", "Sites", "Points"]
    assert heads[3:8] == clinics.sites
    assert heads[-3:] == ["age", "nodes", "dose"]
    first = [cell.text for cell in rows(browser, "atoms")[0].find_elements(By.CSS_SELECTOR, "td")]
    assert int(first[1]) == sum(int(n) for n in first[2:7]) == clinics.table().points[0]


def test_a_group_has_one_colour_everywhere(opened, clinics):
    browser = opened(clinics)
    chip = browser.execute_script(
        "return getComputedStyle(document.querySelectorAll('#atoms .chip')[1]).backgroundColor"
    )
    assert chip == "rgb(230, 159, 0)"  # the second colour of the README's picture
    Select(find(browser, "order")).select_by_value("given")
    cell = "const p = $('matrix').getContext('2d').getImageData(M.left + 1.5 * M.w, M.top + 0.5 * M.h, 1, 1).data;"
    drawn = browser.execute_script(f"{cell} return [...p].slice(0, 3)")
    assert np.allclose(drawn, [230, 159, 0], atol=30)  # paler where less sure


def test_the_picture_opens_in_the_features_that_tell_groups_apart(opened, clinics):
    browser = opened(clinics)
    axes = [Select(find(browser, name)).first_selected_option.text for name in ("across", "up")]
    assert axes == ["age (years)", "nodes"]
    assert "differ most" in find(browser, "picture-caption").text
    Select(find(browser, "across")).select_by_visible_text("dose")
    assert "differ most" not in find(browser, "picture-caption").text


def test_words_are_explained_to_those_who_point_or_tab(opened, clinics):
    browser = opened(clinics)
    node = browser.find_element(By.CSS_SELECTOR, "[data-help=noise]")
    browser.execute_script("arguments[0].focus()", node)
    assert "differs between sites" in find(browser, "tip").text
    browser.execute_script("arguments[0].blur()", node)
    assert not find(browser, "tip").is_displayed()


def test_five_warnings_stand_first_and_the_others_are_folded(opened, clinics):
    browser = opened(clinics)
    assert not find(browser, "alerts").is_displayed()
    browser.execute_script("S.alerts = range(8).map((i) => ({sites: [], text: `warning ${i}.`})); warnings();")
    listed = browser.find_elements(By.CSS_SELECTOR, "#warnings li")
    assert [item.text for item in listed] == [f"Warning {i}." for i in range(5)]
    assert find(browser, "more-warnings").text == "3 more"


def test_a_single_further_column_is_shown_and_more_are_not(opened):
    values = np.random.default_rng(0).normal(0, 5, (4, 9))
    for D in (7, 8):
        browser = opened(modelweld.fuse([values[:, :D] + 0.01 * j for j in range(3)]))
        heads = [head.text for head in browser.find_elements(By.CSS_SELECTOR, "#atoms thead th")]
        assert heads[-1] == ("dim 6" if D == 7 else "2 more")


def test_sixty_sites_have_their_names_on_the_matrix(opened):
    browser = opened(mixtures(60))
    assert browser.execute_script("return M.left") > 40


def test_a_thousand_sites_are_not_a_million_elements(opened):
    drawn = sparse(60, 1000, 4, 0.2, 4.0, 1.0, 1.0, seed=0)
    fusion = modelweld.fuse(drawn.values)
    browser = opened(fusion)
    assert browser.execute_script("return document.getElementsByTagName('*').length") < 5000
    find(browser, "more-sites").click()
    assert len(rows(browser, "sites")) == 50
    find(browser, "site").send_keys("17")
    assert len(rows(browser, "atoms")) == min(25, len(set(fusion.labels[17].tolist())))
    assert len(numbers_of(fusion)["notes"]) > 0
    fine(browser)


@pytest.mark.parametrize("width", [360, 800])
def test_nothing_sticks_out_of_a_small_window(opened, fusion, width):
    browser = opened(fusion)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    browser.refresh()
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(opened, fusion, scheme):
    browser = opened(fusion)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        for name in ("ink", "muted", "accent", "doubt"):
            ratio = browser.execute_script(CONTRAST, name)
            assert ratio >= 4.5, name  # what WCAG asks of text
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CONTRAST = """
const light = (name) => {
  const c = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  c.fillStyle = colour(name); c.fillRect(0, 0, 1, 1);
  const part = [...c.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
};
const [a, b] = [light(arguments[0]), light("paper")];
return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
"""


def test_numbers_are_written_as_tables_write_them(opened, clinics):
    browser, script = opened(clinics), "return arguments[0].map((x) => arguments[1].map((n) => spell(x, n)));"
    small = [0.0, 0.094, -0.0004, 1013.26, 1234567.891, 1.2345e-9, -8.7e-12, 22.0], [0, 1, 3, 7, 8, 11]
    for numbers, decimals in (small, ([0.0, 1.23456e30, -9.8e25], [-27, -18])):
        found = browser.execute_script(script, numbers, decimals)
        assert found == [[spell(x, n) for n in decimals] for x in numbers]


@pytest.mark.parametrize(("low", "high"), [(1013.0, 1014.0), (0.0597, 0.0612), (-3.0, 4e9), (0.0, 1e-9)])
def test_no_two_marks_of_an_axis_have_the_same_number(opened, clinics, low, high):
    marks = opened(clinics).execute_script("return plainTicks(arguments[0], arguments[1], 6);", low, high)
    assert len({text for _, text in marks}) == len(marks) > 2
    assert all(np.isclose(float(text), value) for value, text in marks)


def test_a_warning_stands_in_the_row_of_every_site_that_it_names(opened, clinics):
    browser = opened(clinics)
    first, second, *_ = names = browser.execute_script("return D.sites;")
    text = f"sites {first!r} and {second!r} agree."
    browser.execute_script("S.alerts = [{sites: [arguments[0], arguments[1]], text: arguments[2]}]; use(0); show();",
                           first, second, text)  # fmt: skip
    rows = browser.execute_script("return [...document.querySelectorAll('#sites tbody tr')].map((r) => r.innerText);")
    assert sum("agree." in row for row in rows) == 2
    browser.execute_script("S.alerts = [{sites: D.sites.concat(range(8).map(String)), text: 'all.'}]; use(0); show();")
    rows = browser.execute_script("return [...document.querySelectorAll('#sites tbody tr')].map((r) => r.innerText);")
    assert all(f"One of {len(names) + 8} sites that are named above." in row for row in rows)
