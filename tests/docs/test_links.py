"""Links between pages lead somewhere: to a file of the checkout, and to a heading that is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "changes").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
    *sorted((ROOT / "benchmarks" / "peers").glob("*.md")),
]
LINK = re.compile(
    r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<to>[^)\s]+)(?:\s+\"[^\"]*\")?\)|<img[^>]*\ssrc=\"(?P<image>[^\"]+)\""
)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")


def links(page):
    text = CODE.sub("", FENCED.sub("", page.read_text(encoding="utf-8")))
    return [match["to"] or match["image"] for match in LINK.finditer(text)]


def anchors(page):
    """Names that headings get on the usual hosts: lower case, dashes for blanks, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), f"{link} leads out of the checkout"
        assert target.exists(), f"{link}: no such file"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: no such heading among {sorted(anchors(target))}"


def test_every_page_of_the_guide_is_in_the_index():
    index = ROOT / "docs/index.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert set((ROOT / "docs/guide").glob("*.md")) <= listed


def test_every_question_is_in_the_list_of_questions():
    index = ROOT / "docs/guide/questions/index.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert set(index.parent.glob("*.md")) - {index} <= listed
