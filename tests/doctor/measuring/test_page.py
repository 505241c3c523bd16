"""The page of a measurement: whole, alone, escaped, and the same for the same rounds."""

import dataclasses
import re
import sys
import xml.etree.ElementTree as ET

import pytest

from headrace.doctor.measuring.against import compare_with, load
from headrace.doctor.measuring.json import to_json
from headrace.doctor.measuring.made_up import World
from headrace.doctor.measuring.page.render import PLOTS, render_page, render_short
from headrace.doctor.report.svg import COLOURS

pytest.importorskip("jinja2", reason="jinja2 is not installed")

HOSTILE = "</style><script>alert('x')</script> $x^2$ {{ 7 * 7 }} \x1b[31m"
DECODING = World(
    wall_ms={"read": 1.5, "decode": 6.0, "transform": 1.2, "collate": 0.4, "handover": 0.2}, interference=0.03
)
HEALTHY = World(wall_ms={"sample": 0.05}, noise=0.002)


@pytest.fixture(scope="module")
def decoding(measured):
    return measured(DECODING)


def test_the_page_says_what_was_measured_and_fetches_nothing(decoding):
    page = render_page(decoding)
    assert decoding.conclusion.sentence in page
    assert "decode" in page
    assert decoding.plain_says in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert not re.findall(r"(?:src|href)=[\"']https?:", page)
    assert len(page.encode()) < 2_000_000
    assert render_page(decoding) == page


@pytest.mark.parametrize(("name", "plot"), [(title, plot) for _, title, plot in PLOTS])
def test_a_plot_is_one_svg_in_the_colours_of_the_page(decoding, name, plot):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    svg = plot(decoding)
    if svg is None:
        assert name == "Memory over time"  # made-up rounds hold none
        return
    assert ET.fromstring(svg).tag.endswith("svg")
    assert not set(COLOURS) & set(re.findall(r"#[0-9a-f]{6}", svg))
    assert "mathdefault" not in svg
    assert plot(decoding) == svg


def test_what_users_named_is_escaped(measured):
    page = render_page(measured(DECODING, spec=HOSTILE, command=HOSTILE, consumer=HOSTILE, left_out=(HOSTILE,)))
    assert "<script" not in page
    assert "{{ 7 * 7 }}" in page
    short = render_short(measured(DECODING, spec=HOSTILE))
    assert "<script" not in short


@pytest.mark.parametrize("world", [DECODING, HEALTHY])
def test_the_short_form_says_the_verdict(measured, world):
    m = measured(world)
    assert m.conclusion.sentence in render_short(m)


def test_an_earlier_report_is_shown_beside_it(measured, decoding, tmp_path):
    path = tmp_path / "then.json"
    path.write_text(to_json(measured(dataclasses.replace(DECODING, wall_ms={"decode": 2.0}))))
    page = render_page(decoding, compare_with(load(path), decoding))
    assert 'id="against"' in page
    assert "accelerator utilisation" in page
    assert 'class="bad">worse' in page


def test_without_a_training_step_there_is_no_step_to_show(measured):
    page = render_page(measured(DECODING, consumer=None))
    assert 'id="step"' not in page
    assert 'id="supply"' in page


def test_without_matplotlib_there_are_tables_and_a_line_that_says_so(decoding, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = render_page(decoding)
    assert "plots need matplotlib" in page
    assert "<svg" not in page
    assert "ms a sample" in page
