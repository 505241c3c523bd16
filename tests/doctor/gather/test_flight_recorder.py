"""What the child writes is what the parent reads, through shared memory."""

import os

from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.lab.recorder import FlightRecorder, Mark

texts = st.text(max_size=300)
ids = st.one_of(texts, st.integers(-(2**70), 2**70), st.none())


@given(index=st.one_of(st.none(), st.integers(0, 2**48)), sample_id=ids, path=texts, stage=st.text(max_size=40))
def test_reader_sees_what_the_writer_wrote(index, sample_id, path, stage):
    reader = FlightRecorder.create()
    writer = FlightRecorder(os.dup(reader.descriptor))
    assert reader.read() is None
    writer.begin(index, sample_id, None, "read")
    writer.note_path(path)
    writer.note_stage(stage)
    assert reader.read() == Mark(index=index, sample_id=sample_id, stage=stage, path=path or None)
    assert (reader.num_begun, reader.is_busy) == (1, True)
    writer.end()
    assert (reader.num_begun, reader.is_busy, reader.read()) == (1, False, None)
    writer.close()
    os.close(writer.descriptor)
    reader.close()


def test_an_identity_that_is_too_long_is_named_by_its_beginning():
    recorder = FlightRecorder.create()
    recorder.begin(0, "x" * 20_000, "y" * 20_000, "read")
    mark = recorder.read()
    assert mark.sample_id.startswith("xxxx")
    assert set(mark.sample_id) == {"x"}
    assert set(mark.path) == {"y"}
    assert mark.stage == "read"
    recorder.close()


def test_paths_that_are_no_text_survive():
    recorder = FlightRecorder.create()
    recorder.begin(0, 0, os.fsdecode(b"/data/\xff.png"), "read")
    assert recorder.read().path.endswith(".png")
    recorder.close()
