"""Templates of pages: everything is escaped, names that are not given are errors."""

from __future__ import annotations

import functools
import pathlib
from typing import Any

from headrace.doctor.report.links import rule_page
from headrace.doctor.wording.samples import count
from headrace.errors import MissingExtra

__all__ = ["LONGEST", "check_templates", "clip", "render_template"]

LONGEST = 2000
"""Characters of one text; the JSON report has all of them."""
_OWN = pathlib.Path(__file__).with_name("templates")


def render_template(name: str, values: dict[str, Any], folder: pathlib.Path = _OWN) -> str:
    """Returns a filled template, which ends with a line break.

    Args:
        name: File of the template.
        values: What it names.
        folder: Where it lies. What it includes may also lie beside this module: `page.css`.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    text: str = _environment(folder).get_template(name).render(values)
    return text.strip() + "\n"


def check_templates() -> None:
    """Refuses before an examination of minutes what could not be written after it.

    Raises:
        MissingExtra: jinja2 is not installed.
    """
    _environment(_OWN)


def clip(text: str, most: int = LONGEST) -> str:
    """A text that is not longer than a reader reads, and how much is left out."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most:,} characters more)"


@functools.cache
def _environment(folder: pathlib.Path) -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtra("HTML needs jinja2", do="pip install 'headrace[report]'") from error
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _OWN]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"page": rule_page, "clip": clip, "counted": count}
    return found
