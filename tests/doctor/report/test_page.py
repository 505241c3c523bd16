"""The page: what it shows, how large it gets, its plots, and how a browser draws it: light, dark and on paper."""

import io
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import msgspec
import pytest

from headrace.doctor.report import plots
from headrace.doctor.report.html import render_page, render_short
from headrace.doctor.report.model import IgnoredRow, RunRow, SkippedRow, StageRow
from headrace.doctor.report.svg import COLOURS
from headrace.doctor.report.thumbnail import Thumbnail

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the path")


def test_verdict_comes_first_then_findings_then_tables(report, row):
    page = render_page(report(row()))
    places = [page.index(text) for text in ("has 1 error", 'id="findings"', 'id="time"', 'id="looked"', 'id="again"')]
    assert places == sorted(places)
    for told in ("train.py:31 in crop", "mend it", "same data", "x = 1", "HR301.html", "there is no contract"):
        assert told in page


def test_no_findings_no_section_of_them(report):
    assert 'id="findings"' not in render_page(report())


def test_ignored_findings_stand_on_the_page_with_their_reason(report, row):
    page = render_page(report(ignored=[IgnoredRow(finding=row(), reason="it is meant", at="train.py:3")]))
    assert "it is meant" in page
    assert "1 ignored" in page
    assert "1 is ignored" in page


def test_a_page_of_a_thousand_findings_with_long_texts_stays_below_two_megabytes(report, row):
    long = row(
        message="m" * 10_000,
        sample_ids=[f"sample-{number:09}" * 20 for number in range(100)],
        evidence={"stack": "s" * 20_000, "shapes": "x" * 10_000},
    )
    picture = Thumbnail(sample_id=long.sample_ids[0], field="image", png=bytes(48_000))
    page = render_page(report(*[long] * 1000, known=[long] * 1000), [picture] * 40)
    assert len(page.encode()) < 2_000_000
    assert "more findings are in the JSON report" in page


def test_pictures_stand_beside_the_finding_and_only_if_given(report, row):
    told = report(row(sample_ids=["a\ud800"]))
    assert "data:image/png" not in render_page(told)
    page = render_page(
        told, [Thumbnail(sample_id="a\ud800", field="image", png=b"\x89PNG"), Thumbnail(sample_id="b", png=b"no")]
    )
    assert page.count("data:image/png;base64,") == 1
    assert "data:image/png;base64,iVBORw==" in page


def test_the_short_form_touches_nothing_around_it(report, row):
    text = render_short(report(row()))
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)[1]
    selectors = [one for rule in style.split("}") for one in rule.partition("{")[0].split(",") if one.strip()]
    assert selectors
    assert all(selector.strip().startswith(".headrace-report") for selector in selectors)
    assert text == report(row())._repr_html_()


def test_without_matplotlib_the_page_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = render_page(report())
    assert "plots need matplotlib" in page
    assert "pip install &#39;headrace[report]&#39;" in page
    assert "<svg" not in page
    assert "ms for one sample" in page


# Plots.


@pytest.mark.parametrize("draw", [plots.plot_stages, plots.plot_runs])
def test_a_plot_is_one_svg_that_says_its_names_and_takes_the_colours_of_the_page(report, draw):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    hostile = ["</svg><script>alert(1)</script>", "$x^2$ & 漢字", "n" * 200, "]]> -->"]
    told = report(
        stages=[StageRow(name=name, num_samples=3, wall_s=0.5) for name in hostile],
        runs=[RunRow(name=name, outcome="stuck", wall_s=0.5) for name in hostile],
    )
    svg = draw(told)
    read = ET.fromstring(svg)
    assert read.tag.endswith("svg")
    texts = ["".join(one.itertext()) for one in read.iter() if one.tag.endswith("text")]
    assert "$x^2$ & 漢字" in texts
    assert not [one for one in read.iter() if one.tag.endswith("script")]
    assert "var(--ink)" in svg
    assert not set(COLOURS) & set(re.findall(r"#[0-9a-f]{6}", svg))
    assert draw(told) == svg


@pytest.mark.parametrize("draw", [plots.plot_stages, plots.plot_runs])
def test_nothing_measured_is_no_plot(report, draw):
    empty = report(stages=[StageRow(name="read", num_samples=0, wall_s=None)], runs=[])
    assert draw(empty) is None


# In a browser.


def whole_report(report, row):
    return report(
        row(),
        row(
            "HR101", severity="warning", message="</style><script>document.body.innerHTML='gone'</script>", split="val"
        ),
        row("HR205", severity="info", evidence={"stack": "Traceback\n" * 40}),
        skipped=[SkippedRow(code=f"HR{number}", name="some-rule", reason="no evidence") for number in range(400, 450)],
        stages=[StageRow(name=name, num_samples=9, wall_s=0.1) for name in ("read", "decode", "transform")],
    )


def browse(page, folder, *words):
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=900,1400",
            f"--user-data-dir={folder / 'profile'}", "--no-first-run", *words, path.as_uri(),
        ],
        capture_output=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@in_browser
@pytest.mark.parametrize(("scheme", "is_light"), [(1, True), (0, False)])
def test_a_browser_draws_it_light_and_dark(report, row, tmp_path, scheme, is_light):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    shot = tmp_path / "shot.png"
    page = render_page(whole_report(report, row))
    browse(page, tmp_path, f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}")
    pixels = image.open(io.BytesIO(shot.read_bytes())).convert("L")
    counts = pixels.histogram()
    paper = max(range(256), key=counts.__getitem__)
    assert (paper > 230) if is_light else (paper < 40)
    # Text stands out of the paper: a good many pixels at the other end.
    assert (sum(counts[:90]) if is_light else sum(counts[170:])) > 2000
    assert pixels.size == (900, 1400)


@pytest.mark.slow
@in_browser
def test_it_prints(report, row, tmp_path):
    pdf = tmp_path / "page.pdf"
    browse(render_page(whole_report(report, row)), tmp_path, f"--print-to-pdf={pdf}")
    data = pdf.read_bytes()
    assert data.startswith(b"%PDF")
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", data)) < 12


@pytest.mark.slow
@in_browser
def test_nothing_in_it_runs_and_nothing_overflows_sideways(report, row, tmp_path):
    # The browser is asked with a script that only this test adds, beside a policy that only this test loosens.
    hostile = whole_report(report, row)
    long = msgspec.structs.replace(hostile.findings[0], where="w" * 400, sample_ids=["s" * 400], message="m" * 400)
    page = render_page(msgspec.structs.replace(hostile, findings=[*hostile.findings, long]))
    assert "default-src 'none'" in page
    asking = (
        "<script>document.title = [document.documentElement.scrollWidth <= innerWidth, "
        "document.querySelectorAll('article').length].join(' ')</script>"
    )
    page = re.sub(r"<meta http-equiv=[^\n]*\n", "", page).replace("</body>", f"{asking}</body>")
    dom = browse(page, tmp_path, "--dump-dom").decode()
    assert "<title>true 4</title>" in dom
