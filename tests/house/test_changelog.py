"""Fragments of the changelog: which are refused, how they are put together, what a release does."""

import datetime as dt
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def changelog(load_file):
    return load_file(ROOT / "tools/changelog.py")


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes/README.md").write_text("How.\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\nNewest first.\n\n## 0.1.0 (2026-01-02)\n\n### Added\n\n- Old.\n"
    )
    return tmp_path


def write(checkout, **fragments):
    for name, text in fragments.items():
        slug, kind = name.rsplit("_", 1)
        (checkout / "changes" / f"{slug}.{kind}.md").write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("loader.removed.md", "Gone.", "expected <slug>.<added|changed|fixed>.md"),
        ("Loader.added.md", "New.", "expected <slug>.<added|changed|fixed>.md"),
        ("notes.txt", "New.", "expected <slug>.<added|changed|fixed>.md"),
        ("loader.added.md", " \n", "is empty"),
        ("loader.added.md", "# New\n", "one paragraph"),
        ("loader.added.md", "New.\n\nAnd more.\n", "one paragraph"),
        ("loader.added.md", "New\n", "no full stop"),
    ],
)
def test_a_fragment_that_is_not_in_order_is_named(changelog, checkout, capsys, name, text, said):
    (checkout / "changes" / name).write_text(text)
    assert changelog.main(["--check"], checkout) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"changes/{name}: ")
    assert said in printed


def test_fragments_are_grouped_by_kind_and_joined_to_one_line(changelog, checkout, capsys):
    write(checkout, b_fixed="Fixed one.\n", c_added="Added\nthe other.\n", a_fixed="Fixed another.\n")
    assert changelog.main([], checkout) == 0
    assert capsys.readouterr().out == "### Added\n\n- Added the other.\n\n### Fixed\n\n- Fixed another.\n- Fixed one.\n"


def test_a_release_puts_the_fragments_on_top_and_removes_them(changelog, checkout):
    write(checkout, a_added="New.\n")
    changelog.release("0.2.0", dt.date(2026, 3, 4), checkout)
    assert (checkout / "CHANGELOG.md").read_text() == (
        "# Changelog\n\nNewest first.\n\n## 0.2.0 (2026-03-04)\n\n### Added\n\n- New.\n"
        "\n## 0.1.0 (2026-01-02)\n\n### Added\n\n- Old.\n"
    )
    assert [path.name for path in (checkout / "changes").iterdir()] == ["README.md"]


def test_the_fragments_of_this_checkout_are_in_order(changelog):
    assert changelog.main(["--check"]) == 0
