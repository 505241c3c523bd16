"""A file is changed whole or not at all, and is as before if the change does not hold."""

from __future__ import annotations

import pytest

from headrace.doctor.tuning.source_edit import edit
from headrace.doctor.tuning.writing import write_and_verify
from headrace.errors import ConfigurationError

TEXT = "from torch.utils.data import DataLoader\nloader = DataLoader([1], num_workers=2)\n"


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(TEXT)
    file.chmod(0o751)
    return file


def _edited(raw=TEXT.encode()):
    return edit(raw, "loader", {"num_workers": 4})


def test_it_is_written_with_its_mode_and_nothing_is_left_beside_it(file):
    seen = []
    write_and_verify(str(file), _edited(), lambda: seen.append(file.read_text()) or "")
    assert "num_workers=4" in file.read_text()
    assert seen == [file.read_text()], "looked at when it was written"
    assert file.stat().st_mode & 0o777 == 0o751
    assert [one.name for one in file.parent.iterdir()] == ["train.py"]


def test_a_link_stays_a_link(file, tmp_path):
    link = tmp_path / "link.py"
    link.symlink_to(file)
    write_and_verify(str(link), _edited(), lambda: "")
    assert link.is_symlink()
    assert "num_workers=4" in file.read_text()


def test_what_does_not_hold_is_taken_back(file):
    with pytest.raises(ConfigurationError, match=r"train\.py was changed back: it has 3 workers"):
        write_and_verify(str(file), _edited(), lambda: "it has 3 workers")
    assert file.read_text() == TEXT
    assert file.stat().st_mode & 0o777 == 0o751


def test_an_interrupt_takes_it_back(file):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_verify(str(file), _edited(), interrupted)
    assert file.read_text() == TEXT


def test_a_file_that_was_changed_meanwhile_is_left_alone(file):
    edited = _edited()
    file.write_text(TEXT + "# mine\n")
    with pytest.raises(ConfigurationError, match="was changed while it was looked at"):
        write_and_verify(str(file), edited, lambda: "")
    assert file.read_text() == TEXT + "# mine\n"


def test_what_somebody_saves_while_we_look_is_his(file):
    def saved():
        file.write_text("# mine\n")
        return "no"

    with pytest.raises(ConfigurationError):
        write_and_verify(str(file), _edited(), saved)
    assert file.read_text() == "# mine\n"


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        write_and_verify(str(tmp_path / "gone.py"), _edited(), lambda: "")
