"""The report's page in a real browser."""

import csv
import io
import time

import pytest
from browser import asked_for, browser
from made_runs import corrupted, evaluation, make_run, row, write_evaluation

from auglabel.cli import main

NASTY = '<img src=x onerror="window.hacked=1">\'&</script><script>window.hacked=1</script>'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two methods, two seeds each, measured clean and corrupted; names with HTML in them."""
    folder = tmp_path_factory.mktemp("pages")
    eces = {(name, severity): 0.1 * severity for name in ("fog", NASTY) for severity in (1, 2, 3)}
    runs = []
    for place, (regime, seed) in enumerate((r, s) for r in ("randaug", "randaug_autolabel") for s in (0, 1)):
        found = evaluation(0.7 + 0.1 * seed, 0.2)
        run = make_run(folder / f"<b>{place}</b>", regime, seed, name=NASTY, evaluation=found)
        write_evaluation(run, corrupted(eces) | {"epoch": 3}, stem="corrupted")
        runs.append(str(run))
    out = folder / "page.html"
    assert main(["report", *runs, "--out", str(out), "--title", NASTY]) == 0
    return out


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium


@pytest.fixture
def opened(running, page):
    running.get_log("browser"), running.get_log("performance")
    running.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    running.set_window_size(1280, 900)
    running.get(page.as_uri())
    wait(running, "return document.body.dataset.drawn === 'yes'")
    return running


def wait(running, claim, seconds=30):
    end = time.monotonic() + seconds
    while not running.execute_script(claim):
        assert time.monotonic() < end, f"still not: {claim}"
        time.sleep(0.05)


def cells(running, figure, panel=0):
    """The numbers in the cells of a heat map."""
    return running.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} .chart`)[arguments[1]]"
        ".querySelectorAll('.mark-text.role-mark text')].map((each) => each.textContent)",
        figure,
        panel,
    )


def choose(running, figure, name, value):
    running.execute_script(
        "const box = document.querySelector(`#${arguments[0]} [name=${arguments[1]}]`);"
        "box.value = arguments[2]; box.dispatchEvent(new Event('input', { bubbles: true }))",
        figure,
        name,
        value,
    )


def test_every_chart_is_drawn_without_a_word_from_the_console(opened):
    drawn = opened.execute_script(
        "return [...document.querySelectorAll('.figure')].map((each) => [each.id,"
        " [...each.querySelectorAll('.chart')].map((chart) => chart.querySelectorAll('svg path').length)])"
    )
    assert [name for name, _ in drawn] == [
        f"{name}-0" for name in ("reliability", "severity", "corruptions", "labels", "training", "cost")
    ]
    assert [len(charts) for _, charts in drawn] == [2, 1, 2, 1, 1, 1]
    assert all(paths > 5 for _, charts in drawn for paths in charts)
    assert [line for line in opened.get_log("browser") if line["level"] in ("SEVERE", "WARNING")] == []


def test_no_request_leaves_the_page(opened, page):
    urls = [url for url in asked_for(opened) if not url.startswith(("data:", "blob:"))]
    assert urls == [page.as_uri()]


def test_names_with_html_in_them_do_no_harm(opened):
    assert opened.execute_script("return window.hacked") is None
    assert opened.execute_script("return document.querySelectorAll('img[src=x]').length") == 0
    assert opened.execute_script("return document.querySelector('h1').textContent") == NASTY
    assert opened.title == NASTY


def test_the_slider_moves_the_heat_map(opened):
    after_three = cells(opened, "labels-0")
    assert len(after_three) == 82
    assert "97.0" in after_three  # magnitude 10 after epoch 3: 1 - 0.03
    choose(opened, "labels-0", "epoch", 0)
    wait(opened, "return document.querySelector('#labels-0 output').value === '1'")
    after_one = cells(opened, "labels-0")
    assert len(after_one) == 82
    assert min(map(float, after_one)) == 99.0  # after epoch 1: 1 - 0.01
    assert after_one != after_three


def test_another_metric_changes_every_panel(opened):
    assert cells(opened, "corruptions-0", 1)[:3] == ["10", "20", "30"]  # ECE, in percent
    choose(opened, "corruptions-0", "metric", 1)
    wait(
        opened,
        "return document.querySelectorAll('#corruptions-0 .chart')[1]"
        ".querySelector('.mark-text.role-mark text').textContent === '50'",
    )
    assert set(cells(opened, "corruptions-0", 0)) == {"50"}  # accuracy


def test_another_metric_draws_another_curve(opened):
    curve = "return document.querySelector('#training-0 .mark-line path').getAttribute('d')"
    before = opened.execute_script(curve)
    choose(opened, "training-0", "metric", 1)
    end = time.monotonic() + 20
    while opened.execute_script(curve) == before:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_every_chart_and_its_data_can_be_saved(opened, tmp_path):
    opened.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    for kind in ("svg", "png", "csv"):
        opened.execute_script(f"document.querySelector('#severity-0 [data-save={kind}]').click()")
        file, end = tmp_path / f"severity.{kind}", time.monotonic() + 30
        while not file.exists() or not file.stat().st_size:
            assert time.monotonic() < end, f"no {kind}"
            time.sleep(0.1)
    assert (tmp_path / "severity.svg").read_text().startswith("<svg")
    assert (tmp_path / "severity.png").read_bytes().startswith(b"\x89PNG")
    opened.execute_script("document.querySelector('#corruptions-0 [data-save=csv]').click()")
    file, end = tmp_path / "corruptions.csv", time.monotonic() + 30
    while not file.exists() or not file.stat().st_size:
        assert time.monotonic() < end
        time.sleep(0.1)
    lines = list(csv.DictReader(io.StringIO(file.read_text())))
    ours = [line for line in lines if line["corruption"] == NASTY and line["metric"] == "ECE"]
    assert [line["mean"] for line in ours if line["labels"] == "RandAug + one-hot"] == ["0.1", "0.2", "0.3"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_charts_follow_the_readers_theme(opened, scheme):
    opened.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    bright = "rgb(230, 231, 232)" if scheme == "dark" else "rgb(29, 31, 33)"
    assert opened.execute_script("return getComputedStyle(document.body).color") == bright
    wait(
        opened,
        "return getComputedStyle(document.querySelector('#cost-0 .role-axis-label text')).fill"
        f" === '{bright}'",
    )


def test_on_a_phone_nothing_sticks_out(opened):
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True},
    )
    try:
        opened.refresh()
        wait(opened, "return document.body.dataset.drawn === 'yes'")
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 390
        wide = opened.execute_script(
            "return [...document.querySelectorAll('.chart svg')].map((e) => e.getBoundingClientRect().width)"
        )
        assert max(wide) <= 390
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_whoever_reads_by_ear_hears_what_is_chosen_and_can_scroll_by_keyboard(opened):
    label = "return document.querySelector('#severity-0 .chart').getAttribute('aria-label')"
    assert opened.execute_script(label) == "Against severity, ECE, 10 images"
    choose(opened, "severity-0", "metric", 1)
    assert opened.execute_script(label) == "Against severity, accuracy, 10 images"
    described = opened.execute_script(
        "return [...document.querySelectorAll('.chart')].every("
        "(each) => document.getElementById(each.getAttribute('aria-describedby')).textContent.length > 20)"
    )
    assert described
    regions = opened.execute_script(
        "return [...document.querySelectorAll('.scroll')].map((each) => [each.tabIndex, each.ariaLabel])"
    )
    assert all(place == 0 and name for place, name in regions)


def test_bins_of_few_images_are_pale_with_a_dashed_edge(running, tmp_path):
    bins = {"count": [1.0, 999.0], "confidence": [0.4, 900.0], "correct": [1.0, 900.0]}
    found = {"rows": [row(0.9, 0.1, bins=bins)], "means": []}
    assert (
        main(["report", str(make_run(tmp_path / "a", evaluation=found)), f"--out={tmp_path / 'p.html'}"]) == 0
    )
    running.get((tmp_path / "p.html").as_uri())
    wait(running, "return document.body.dataset.drawn === 'yes'")
    bars = running.execute_script(
        "return [...document.querySelectorAll('#reliability-0 .mark-rect path')].map("
        "(each) => [each.getAttribute('stroke-dasharray'), each.getAttribute('fill-opacity')])"
    )
    assert bars[:2] == [["3,3", "0.1"], ["1,0", "0.9"]]
    assert len(bars) == 4  # and the share of each bin below
