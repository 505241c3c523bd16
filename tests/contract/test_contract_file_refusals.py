"""A file that is no contract is refused, with the line or the key and what was probably meant."""

import re

import pytest

from headrace.contract import Contract
from headrace.errors import ContractFileError


def refusal(text):
    with pytest.raises(ContractFileError) as caught:
        Contract.from_toml(text, origin="c.toml")
    return caught.value


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("format = 1\nmay_filtre = true", r"c\.toml: unknown key 'may_filtre'; did you mean 'may_filter'\?"),
        ("format = 1\n[fields.x]\nminimun = 0", r"c\.toml, field x: unknown key 'minimun'; did you mean 'minimum'\?"),
        ("format = 1\n[field.x]\nkind = 'tensor'", r"c\.toml: unknown key 'field'; did you mean 'fields'\?"),
        ("format = 1\nmay_filter = 1", r"c\.toml: may_filter must be true or false, not 1"),
        ("format = 1\nnum_samples = true", r"c\.toml: num_samples must be a whole number, not true"),
        ("format = 1\n[fields.x]\nminimum = 'low'", r'c\.toml, field x: minimum must be a number, not "low"'),
        ("format = 1\n[fields.x]\nshape = [3, 1.5]", r"c\.toml, field x: shape must be a list of .*, not \[3, 1\.5\]"),
        ("format = 1\n[fields.x]\nkind = {}", r"c\.toml, field x: kind must be a string, not a table"),
        ("format = 1\n[fields]\nx = 3", r"c\.toml: fields\.x must be a table, not 3"),
        ("format = 1\n[fields.x]\nkind = 'tensr'", r"c\.toml: field x: unknown kind 'tensr'; did you mean 'tensor'\?"),
        ("format = 1\n[fields.x]\ndtype = 'unit8'", r"c\.toml: field x: unknown dtype 'unit8'; did you mean 'uint8'\?"),
        ("format = 1\nincomplete = 'skp'", r"c\.toml: incomplete is one of .*, not 'skp'; did you mean 'skip'\?"),
        ("format = 1\nnum_samples = -1", r"c\.toml: num_samples is a count, not -1"),
        ("num_samples = 1", r"c\.toml has no format; this headrace reads format 1"),
        ("format = 2", r"c\.toml has format 2; this headrace reads format 1"),
        ("", r"c\.toml has no format"),
    ],
)
def test_the_key_and_what_was_meant_are_named(text, what):
    assert re.match(what, str(refusal(text)))


def test_a_syntax_error_shows_its_line():
    error = refusal("format = 1\n\n[fields.x\nkind = 'tensor'\n")
    assert re.match(r"c\.toml is not TOML: .*line 3", error.what)
    assert error.why == "line 3: [fields.x"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    path = tmp_path / "contract.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ContractFileError, match=r"contract\.toml cannot be read"):
        Contract.load(path)
