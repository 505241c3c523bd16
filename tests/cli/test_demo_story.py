"""The demo holds its promises from end to end on real data, and fails in words when one of them does not hold."""

import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli import main
from headrace.cli.demo import faults
from headrace.cli.demo.resume import Delivered


@pytest.mark.slow
@pytest.mark.timeout(300)  # half a minute on two free cores; they may not be free
def test_from_files_to_an_exact_resume(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--dir", "mill", "--seed", "3"]) == 0
    screen = capsys.readouterr().out
    for code in ("HR101", "HR102", "HR106", "HR304"):
        assert f"E {code} " in screen
    assert screen.count("is clean: no fault was found") == 2
    assert float(re.search(r"(\S+)% of the held-out digits", screen)[1]) >= 96
    digests = re.findall(r"17,256 samples, (order \w+, pixels \w+)", screen)
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert json.loads((tmp_path / "mill" / "loader.json").read_text())["epoch"] == 6
    assert max(map(len, screen.replace(str(tmp_path), "").splitlines())) <= 80


@pytest.mark.slow
def test_the_faults_can_be_left_in_for_the_reader(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--leave-broken"]) == 0
    capsys.readouterr()
    assert main(["diagnose", "headrace-demo/broken.py:make_loader", "--full", "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert len({sample_id for finding in findings for sample_id in finding["sample_ids"]}) == len(faults.FAULTY)


@pytest.mark.slow
def test_a_broken_promise_ends_with_1_and_says_which(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(faults, "break_data", lambda root, digits: None)
    assert main(["demo"]) == 1
    assert "The demo failed: samples [" in capsys.readouterr().out.splitlines()[-1]


def test_a_missing_library_names_the_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == (
        "headrace: error: the demo needs sklearn, which is not installed\n  do:    pip install 'headrace[demo]'\n"
    )
    assert not list(tmp_path.iterdir())


IDS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd")), max_size=8)


@given(IDS, IDS, st.integers(0, 1), st.integers(0, 1))
def test_two_records_differ_exactly_if_ids_order_or_pixels_do(ids, others, pixels, other_pixels):
    one, other = Delivered(ids, pixels), Delivered(others, other_pixels)
    assert (one.first_difference(other) is None) == ((ids, pixels) == (others, other_pixels))
    assert (one.order_hash == other.order_hash) == (ids == others)
