"""Whatever a sample does to its interpreter, the sample is named and the others are examined."""

import pytest

from headrace.doctor.probes.reads import ReadSamples, read_samples

pytestmark = pytest.mark.slow  # each test starts interpreters

SICK = """
class TwoArguments(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}\\nand a second line")

class Sick(Base):
    size = 18
    def __getitem__(self, index):
        if index == 2:
            ctypes.string_at(0)
        if index == 4:
            os._exit(3)
        if index == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        if index == 8:
            while True:
                pass
        if index == 10:
            re.match(r"(a+)+$", "a" * 64 + "b")  # years in C, holding the interpreter lock
        if index == 12:
            raise TwoArguments(7, "no such box")
        if index == 14:
            sys.exit("enough")
        if index == 16:
            raise IndexError("list index out of range")
        return np.zeros((3, 4), np.float32)

def make():
    return Sick()
"""


def read(lab, size, **options):
    return read_samples(lab, ReadSamples(indices=range(size), seed=0, **options), lambda text: None)


def test_every_way_to_die_is_told_apart_and_none_takes_others_along(open_lab):
    prepared, ending = read(open_lab(SICK, per_sample_s=1.5), 18)
    found = {one.read.index: one.read for one in prepared}
    assert ending.outcome == "done"
    assert list(found) == list(range(18))
    assert {index: (one.outcome, one.error_type) for index, one in found.items() if one.outcome != "ok"} == {
        2: ("crashed", "SIGSEGV"),
        4: ("crashed", "exit status 3"),
        6: ("crashed", "SIGKILL"),
        8: ("stuck", None),
        10: ("stuck", None),
        12: ("error", "TwoArguments"),
        14: ("error", "SystemExit"),
        16: ("error", "IndexError"),
    }
    assert all(one.stage == ("done" if one.outcome == "ok" else "read") for one in found.values())
    # Each is named by place: the line of the user's own file.
    for index in (2, 8, 10, 12, 14, 16):
        assert "train.py:" in found[index].error_at, index
        assert found[index].error_at.endswith("in __getitem__")
        assert "headrace" not in found[index].stack
    assert "re.match" not in found[10].error_at
    assert found[12].error_message == "7: no such box"


def test_identity_is_the_datasets_own_also_after_a_crash(open_lab):
    code = """
    class Sick(Base):
        size = 3
        runs_user_code = True
        def read_many(self, indices):
            return [self[i] for i in indices]
        def sample_id(self, index):
            return f"photos/ä {index}.png"
        def locate(self, index):
            return f"/data/photos/{index}.png"
        def fingerprint(self):
            return ""
        def __getitem__(self, index):
            if index == 1:
                ctypes.string_at(0)
            return index

    def make():
        return Sick()
    """
    prepared, _ = read(open_lab(code), 3)
    assert [(one.read.sample_id, one.read.path, one.read.outcome) for one in prepared] == [
        ("photos/ä 0.png", "/data/photos/0.png", "ok"),
        ("photos/ä 1.png", "/data/photos/1.png", "crashed"),
        ("photos/ä 2.png", "/data/photos/2.png", "ok"),
    ]


def test_gives_up_after_a_bounded_number_of_deaths(open_lab, monkeypatch):
    monkeypatch.setattr("headrace.doctor.probes.reads.MAX_DEATHS", 2)
    code = """
    class Deadly(Base):
        size = 100
        def __getitem__(self, index):
            os._exit(1)

    def make():
        return Deadly()
    """
    prepared, ending = read(open_lab(code), 100)
    assert [one.read.index for one in prepared] == [0, 1]
    assert ending.outcome == "crashed"


def test_the_place_is_where_the_sample_stands_and_not_another_thread(open_lab):
    code = """
    import threading

    def elsewhere():
        threading.Event().wait()

    class Threaded(Base):
        size = 1
        def __init__(self):
            for _ in range(3):
                threading.Thread(target=elsewhere, daemon=True).start()
        def __getitem__(self, index):
            return self.deeper()
        def deeper(self):
            threading.Event().wait()

    make = Threaded
    """
    ((prepared,), _) = read(open_lab(code, per_sample_s=0.5), 1)
    assert prepared.read.outcome == "stuck"
    assert prepared.read.error_at.endswith("in deeper")
    assert "in elsewhere" in prepared.read.stack
