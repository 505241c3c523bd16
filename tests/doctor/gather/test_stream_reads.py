"""Samples of a stream are read in the order of a pass; what fails is named, and ends no more than it must."""

import pytest

from headrace.doctor.probes.stream_reads import ReadStream, read_stream

pytestmark = pytest.mark.slow


@pytest.fixture
def walk(open_lab):
    def run(code, limit=None, **options):
        return read_stream(open_lab(code, **options), ReadStream(limit=limit, seed=0), lambda text: None)

    return run


def outcomes(walked):
    return [(one.read.sample_id, one.read.outcome) for one in walked.prepared]


COUNT = """
class Numbers:
    def __iter__(self):
        return iter(range(SIZE))
make = Numbers
"""


@pytest.mark.parametrize("size", [0, 1, 15, 16])
def test_a_short_stream_is_read_as_a_whole(walk, size):
    walked = walk(COUNT.replace("SIZE", str(size)), limit=16)
    assert outcomes(walked) == [(f"#{i}", "ok") for i in range(size)]
    assert walked.num_samples == (size if size < 16 else walked.num_samples)
    assert walked.ending.outcome == "done"


def test_a_long_stream_is_read_at_its_beginning_and_spread_over_what_follows(walk):
    walked = walk(COUNT.replace("SIZE", "10**9"), limit=16)
    places = [one.read.index for one in walked.prepared]
    assert places[:12] == list(range(12))
    assert len(places) == len(set(places)) == 16
    assert places == sorted(places)
    assert 48 <= places[-1] < 64
    assert (walked.is_whole, walked.num_samples) == (False, places[-1] + 2)


def test_without_a_limit_everything_is_read(walk):
    walked = walk(COUNT.replace("SIZE", "300"))
    assert (len(walked.prepared), walked.num_samples, walked.is_whole) == (300, 300, True)


def test_a_generator_ends_with_its_exception(walk):
    walked = walk("""
    class Numbers:
        def __iter__(self):
            for i in range(9):
                if i == 3: raise KeyError("three")
                yield i
    make = Numbers
    """)
    assert outcomes(walked) == [("#0", "ok"), ("#1", "ok"), ("#2", "ok"), ("#3", "error")]
    read = walked.prepared[-1].read
    assert (read.error_type, read.error_message) == ("KeyError", "'three'")
    assert read.error_at.endswith(" in __iter__")
    assert (walked.is_whole, walked.num_samples) == (False, 5)


ITERATOR = """
class Numbers:
    def __iter__(self):
        return Iterator()
class Iterator:
    def __init__(self): self.i = -1
    def __iter__(self): return self
    def __next__(self):
        self.i += 1
        if FAILS: raise OSError("gone")
        if self.i == 30: raise StopIteration
        return self.i
make = Numbers
"""


def test_an_iterator_that_goes_on_after_an_exception_is_followed(walk):
    walked = walk(ITERATOR.replace("FAILS", "self.i % 10 == 3"))
    failed = [one.read.sample_id for one in walked.prepared if one.read.outcome == "error"]
    assert failed == ["#3", "#13", "#23"]
    assert len(walked.prepared) == 30


@pytest.mark.timeout(60)
def test_an_iterator_that_raises_for_ever_is_given_up(walk):
    walked = walk(ITERATOR.replace("FAILS", "self.i > 3"))
    assert walked.ending.outcome == "done"
    assert {one.read.outcome for one in walked.prepared[4:]} == {"error"}
    assert len(walked.prepared) < 30


def test_a_crash_names_the_sample_in_hand(walk):
    walked = walk("""
    class Numbers:
        def __iter__(self):
            for i in range(9):
                if i == 3: os.kill(os.getpid(), signal.SIGSEGV)
                yield i
    make = Numbers
    """)
    assert outcomes(walked)[3:] == [("#3", "crashed")]
    assert walked.prepared[-1].read.error_type == "SIGSEGV"
    assert walked.has_failed


def test_a_stream_that_hangs_names_the_sample_in_hand(walk):
    walked = walk(
        """
    class Numbers:
        def __iter__(self):
            yield from range(3)
            while True: time.sleep(1)
    make = Numbers
    """,
        per_sample_s=3.0,
    )
    assert outcomes(walked)[3:] == [("#3", "stuck")]


def test_a_stream_that_cannot_begin_is_told(walk):
    walked = walk("""
    class Numbers:
        def __iter__(self):
            raise FileNotFoundError("no index.json")
    make = Numbers
    """)
    assert outcomes(walked) == [("#0", "error")]
    assert walked.prepared[0].read.error_at.endswith(" in __iter__")
    assert walked.ending.outcome == "done"
