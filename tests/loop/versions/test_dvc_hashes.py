"""Hashes of files are the ones that DVC computes; the values are what dvc-data 3.18 returned."""

import pytest

from headrace.loop.versions.dvc_hashes import file_md5, folder_md5

VALUES = [
    (b"a\r\nb\r\n", "59b0d7772f0561efb95518f3cb8abc60", "dd8c6a395b5dd36c56d23275028f526c"),
    (b"\xe9" * 3 + b"abcd\r\nx", "df543b5216c61756eeb7371321c89ba8", "4ca617552343483d5a1e2a53863d6461"),
    (b"\xe9" * 4 + b"abcd\r\nx", "a272d90762a868cae59538c9fb1afe2f", "a272d90762a868cae59538c9fb1afe2f"),
    (b"a" * 511 + b"\0\r\n", "8aab188e9c59765e7ce80f5ba3ab39af", "8aab188e9c59765e7ce80f5ba3ab39af"),
    (b"a" * 512 + b"\0\r\n", "96a3dead43ebd94a480cd618558af424", "cf3dae686db0ee01ddf03cfaf2cfd9ac"),
    (b"a" * (2**20 - 1) + b"\r\n" + b"b\r\n", "e0bc301cdd0940f2de68d786f8e52418", "deb8178cc400550795d42d701b97846d"),
    (b"a\r\n" + b"a" * 2**20 + b"\0\r\n", "cd475a503ea29779c0c7945c9e776028", "c6fabe874bbfc24e67783606327d244d"),
    (b"", "d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e"),
]


@pytest.mark.parametrize(("content", "plain", "of_old"), VALUES)
def test_of_a_file_since_dvc_3_and_before(tmp_path, content, plain, of_old):
    (tmp_path / "a").write_bytes(content)
    assert file_md5(tmp_path / "a") == plain
    assert file_md5(tmp_path / "a", is_plain=False) == of_old


def test_of_a_folder_the_order_does_not_matter():
    files = {"b": "1" * 32, "ä": "2" * 32, "a/c": "3" * 32, "a.c": "4" * 32}
    assert folder_md5(files) == folder_md5(dict(reversed(files.items())))
    assert folder_md5({}) == "d751713988987e9331980363e24189ce.dir"
