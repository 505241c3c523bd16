"""Which samples are tried, what is seen while one is prepared, and at which stage it failed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.probes.reads import MAX_FIELDS, ReadSamples, choose_indices, read_samples


@given(num_samples=st.integers(0, 5000), limit=st.integers(1, 200), seed=st.integers(0, 3))
def test_chosen_rows_are_distinct_rows_and_as_many_as_asked(num_samples, limit, seed):
    chosen = list(choose_indices(num_samples, limit, seed))
    assert len(chosen) == len(set(chosen)) == min(num_samples, limit)
    assert set(chosen) <= set(range(num_samples))
    assert chosen == list(choose_indices(num_samples, limit, seed))


@given(num_samples=st.integers(20, 100_000), seed=st.integers(0, 3))
def test_chosen_rows_hold_the_edges_and_reach_every_part(num_samples, seed):
    chosen = set(choose_indices(num_samples, 18, seed))
    assert {0, 1, 2, num_samples // 2, num_samples - 2, num_samples - 1} <= chosen
    # 12 equal parts: each is reached by its own draw, or by a row that was chosen before.
    for part in range(12):
        start, end = part * num_samples // 12, (part + 1) * num_samples // 12
        assert any(start <= row < end for row in chosen) or end - start == 1


def read(lab, size):
    prepared, ending = read_samples(lab, ReadSamples(indices=range(size), seed=0), lambda text: None)
    assert ending.outcome == "done"
    return prepared


NAMES = ["0.png", "1.jpg", "2.png", "3.png", "4.png", "5.png"]

FOLDER = """
from PIL import Image
from PIL.Image import open as open_image

class Photos(Base):
    names = ["0.png", "1.jpg", "2.png", "3.png", "4.png", "5.png"]
    size = len(names)
    def __init__(self):
        self.transform = self.to_array
    def to_array(self, image):
        if image.size == (5, 5):
            raise ValueError("too small")
        return np.asarray(image.convert("RGB"))
    def __getitem__(self, index):
        try:
            image = (Image.open if index % 2 else open_image)(f"FOLDER/{self.names[index]}")
            image.load()
        except OSError as error:
            raise RuntimeError(f"no picture {index}") from error
        image = self.transform(image)
        if index == 5:
            raise KeyError("label")
        return image, index

def make():
    return Photos()
"""


@pytest.fixture
def photos(tmp_path):
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 255, (48, 48, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "0.png")
    Image.fromarray(noise).save(tmp_path / "1.jpg")
    whole = (tmp_path / "1.jpg").read_bytes()
    (tmp_path / "1.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "2.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    Image.fromarray(noise[..., 0]).save(tmp_path / "3.png")
    Image.fromarray(noise[:5, :5]).save(tmp_path / "4.png")
    Image.fromarray(noise).save(tmp_path / "5.png")
    return FOLDER.replace("FOLDER", str(tmp_path))


@pytest.mark.slow
def test_files_and_images_are_seen_and_stages_told_apart(open_lab, photos, tmp_path):
    reads = [one.read for one in read(open_lab(photos), 6)]
    assert [(one.outcome, one.stage, one.error_type) for one in reads] == [
        ("ok", "done", None),
        ("error", "decode", "RuntimeError"),  # the user's own exception, of a failure in the decoder
        ("error", "decode", "RuntimeError"),
        ("ok", "done", None),
        ("error", "transform", "ValueError"),
        ("error", "read", "KeyError"),
    ]
    for one in reads:
        (file,) = one.files
        assert one.path == file.path == f"{tmp_path}/{NAMES[one.index]}"
        assert file.head == (tmp_path / NAMES[one.index]).read_bytes()[:64]
        assert file.size_bytes == (tmp_path / NAMES[one.index]).stat().st_size
    seen = [[(image.format, image.mode, image.size) for image in one.images] for one in reads]
    assert seen == [
        [("PNG", "RGB", (48, 48))],
        [("JPEG", "RGB", (48, 48))],
        [],
        [("PNG", "L", (48, 48))],
        [("PNG", "RGB", (5, 5))],
        [("PNG", "RGB", (48, 48))],
    ]
    assert "train.py" in reads[1].error_at
    assert "Truncated" in reads[1].stack or "truncated" in reads[1].stack
    assert [(view.field, view.shape) for view in reads[3].fields] == [("0", (48, 48, 3)), ("1", ())]


@pytest.mark.slow
def test_stage_times_are_told_and_add_up(open_lab, photos):
    first = read(open_lab(photos), 6)[0]
    assert set(first.stage_s) == {"read", "decode", "transform"}
    assert sum(first.stage_s.values()) == pytest.approx(first.read.wall_s)


@pytest.mark.slow
def test_a_plan_names_its_own_stages_and_ids(open_lab):
    prepared = read(
        open_lab("""
    import headrace as hr

    def half(row):
        return {"x": row["x"] / 2}
    def check(row):
        if row["x"] == 1.0:
            raise ValueError("one")
        return row

    def make():
        return hr.arrays(x=[0.0, 1.0, 2.0], ids=["a", "b", "c"]).map(half).map(check)
    """),
        3,
    )
    assert [(one.read.sample_id, one.read.outcome, one.read.stage) for one in prepared] == [
        ("a", "ok", "done"),
        ("b", "ok", "done"),
        ("c", "error", "check"),
    ]
    assert prepared[2].read.error_at.endswith("in check")


@pytest.mark.slow
def test_draws_of_global_generators_repeat_between_reports(open_lab):
    code = """
    import random
    class Noisy(Base):
        size = 3
        def __getitem__(self, index):
            return random.random(), np.random.rand(2)

    def make():
        return Noisy()
    """
    first, again = ([one.read.fields for one in read(open_lab(code), 3)] for _ in range(2))
    assert first == again
    assert len({fields[0].minimum for fields in first}) == 3


@pytest.mark.slow
def test_a_transform_is_entered_without_becoming_another(open_lab):
    prepared = read(
        open_lab("""
    class Scale:
        factor = 3
        def __call__(self, x):
            return x * self.factor

    class Scaled(Base):
        size = 1
        def __init__(self):
            self.transform = Scale()
        def __getitem__(self, index):
            assert isinstance(self.transform, Scale)
            assert self.transform.factor == 3
            self.transform.factor = 4
            import copy
            assert type(copy.deepcopy(self.transform)) is Scale
            return self.transform(5)

    def make():
        return Scaled()
    """),
        1,
    )
    assert prepared[0].read.stack is None
    assert prepared[0].read.fields[0].maximum == 20


@pytest.mark.slow
def test_odd_samples_are_described_and_not_copied(open_lab):
    prepared = read(
        open_lab("""
    class Knot:
        def __str__(self): raise ValueError
    class BadText(Exception):
        def __str__(self): raise ValueError
    class Odd(Base):
        size = 4
        def __getitem__(self, index):
            if index == 0:
                return None
            if index == 1:
                return ["word"] * 100_000
            if index == 2:
                knot = []
                knot.append(knot)
                return knot
            raise BadText

    def make():
        return Odd()
    """),
        4,
    )
    reads = [one.read for one in prepared]
    assert [view.kind for view in reads[0].fields] == ["none"]
    assert len(reads[1].fields) == MAX_FIELDS
    assert [view.kind for view in reads[2].fields] == ["list"]
    assert (reads[3].error_type, reads[3].error_message) == ("BadText", "")
