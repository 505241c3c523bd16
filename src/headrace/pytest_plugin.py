"""pytest plugin: the fixture `headrace_check`, which fails a test if a loader has findings.

    def test_the_loader(headrace_check):
        headrace_check(make_loader(), num_classes=10)

It comes with headrace: pytest finds it by itself. Nothing heavy is imported before a test uses it.
"""

from __future__ import annotations

import pathlib
import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest

if TYPE_CHECKING:
    from headrace.doctor.report.model import Report

__all__ = ["Check", "headrace_check", "make_check", "pytest_addoption"]

RANKS = {"error": 2, "warning": 1, "info": 0}
LONGEST_NAME = 120
"""Characters of a page's file name; most file systems take 255 bytes."""


class Check(Protocol):
    """What the fixture is."""

    def __call__(
        self,
        loader: Any,
        *,
        ignore: str | Iterable[str] = (),
        select: str | Iterable[str] = (),
        severity: Literal["error", "warning", "info"] = "warning",
        **options: Any,
    ) -> Report:
        """Diagnoses a loader and fails the test if there are findings; returns the report otherwise.

        Args:
            loader: A loader, a data set, or a TARGET such as `train.py:make_loader`.
            ignore: Codes, or beginnings of codes, of rules to leave out.
            select: The same, of the only rules to judge.
            severity: The least severity that fails the test.
            options: As for `headrace.diagnose`, and `max_samples`, `seed`.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--headrace-html DIR`."""
    group = parser.getgroup("headrace")
    group.addoption(
        "--headrace-html", metavar="DIR", default=None, help="write a page for each headrace_check into this folder"
    )


@pytest.fixture
def headrace_check(request: pytest.FixtureRequest) -> Check:
    """Diagnoses a loader and fails the test, with the report as text, if there are findings."""
    return make_check(request)


def make_check(request: pytest.FixtureRequest) -> Check:
    """Returns what the fixture gives to one test."""
    num_checks = 0

    def check(
        loader: Any,
        *,
        ignore: str | Iterable[str] = (),
        select: str | Iterable[str] = (),
        severity: Literal["error", "warning", "info"] = "warning",
        **options: Any,
    ) -> Report:
        nonlocal num_checks
        if severity not in RANKS:
            raise ValueError(f"severity={severity!r}: expected one of {', '.join(RANKS)}")
        num_checks += 1
        command = f"pytest {request.node.nodeid}"
        report = _examine(loader, {"select": _codes(select), "ignore": _codes(ignore), **options}, command)
        where = _write_page(report, request, num_checks)
        counted = [row for row in report.findings if RANKS[row.severity] >= RANKS[severity]]
        if counted:
            from headrace.doctor.report.text import finding_text, verdict_sentence
            from headrace.doctor.report.visible import visible_text

            blocks = [verdict_sentence(report), *map(finding_text, counted), *where]
            pytest.fail(visible_text("\n\n".join(blocks)), pytrace=False)
        if report.verdict == "inconclusive":
            from headrace.doctor.report.text import verdict_sentence

            # Neither passed nor failed: said aloud, so that nobody takes it for a clean loader.
            warnings.warn(pytest.PytestWarning(f"headrace_check: {verdict_sentence(report)}"), stacklevel=2)
        return report

    return check


def _examine(target: Any, options: dict[str, Any], command: str) -> Report:
    """The seam to the doctor: as `headrace.diagnose`, with every option, and with the test as the command."""
    from headrace.doctor.diagnose import Options, diagnose
    from headrace.doctor.suppression import apply_comments

    return apply_comments(diagnose(target, Options(**options), command=command))


def _codes(codes: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(codes, str):
        return tuple(code for code in re.split(r"[,\s]+", codes) if code)
    return tuple(codes)


def _write_page(report: Report, request: pytest.FixtureRequest, number: int) -> list[str]:
    """Writes the page where one is asked for; returns what to tell of it."""
    folder = request.config.getoption("headrace_html", None)
    if folder is None:
        return []
    from headrace.doctor.report.html import render_page

    name = re.sub(r"[^\w.-]+", "-", request.node.nodeid).strip("-")[-LONGEST_NAME:]
    path = pathlib.Path(folder) / f"{name}{'' if number == 1 else f'-{number}'}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page(report), encoding="utf-8")
    return [f"page: {path}"]
