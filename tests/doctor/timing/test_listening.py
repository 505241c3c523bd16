"""With spies in the process, as in the lab's child, stages are told apart without workers, and by names that were imported."""

import json
import subprocess
import sys

PROGRAM = '''
import json, pathlib, sys, time
from headrace.doctor.lab import spies
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
bench = Bench(FlightRecorder.create())
spies.install(bench)

import numpy as np
import torch
from numpy import load  # a name of the user's own for what is listened to
from torch.utils.data import DataLoader, Dataset
from headrace.doctor.subject import Subject
from headrace.doctor.timing.accounting import Account
from headrace.doctor.timing.knock_out import without_stages

folder = pathlib.Path(sys.argv[1])
NAP_S = 0.02


class Slow:
    """Takes its time to be read from a file."""
    def __init__(self, value): self.value = value
    def __reduce__(self): return rest, (self.value,)


def rest(value):
    time.sleep(NAP_S)
    return np.full(3, value)


for number in range(4):
    np.save(folder / f"{number}.npy", np.array([Slow(number)], dtype=object), allow_pickle=True)


class Rows(Dataset):
    def __len__(self): return 40
    def __getitem__(self, index):
        return torch.from_numpy(load(folder / f"{index % 4}.npy", allow_pickle=True)[0].astype("int64"))


def seconds(loader):
    times = []
    for batch in loader:
        times.append(time.monotonic())
        assert batch.shape == (4, 3)
    return times[-1] - times[2]


found = {}
for workers in (0, 1):
    loader = DataLoader(Rows(), 4, num_workers=workers)
    kept = Account(folder / f"notes{workers}")
    with bench.holding(None, None, stage="loop"):  # as an experiment has it; nobody is to hear twice
        list(kept.wrap(Subject(loader), loader))
        is_listening = bench.is_listening
    uses = {one.stage: one.wall_s / one.num_samples for one in kept.read()[0]}
    plain = seconds(loader)
    without = {" ".join(stages): seconds(without_stages(Subject(loader), loader, stages, bench)) / plain
               for stages in (("decode",), ("read",), ("read", "decode"))}
    found[workers] = dict(uses=uses, without=without, is_listening=is_listening, opened=bench.opened)
print(json.dumps(found))
'''


def printed(program, folder):
    """What a program prints that runs by itself: spies stay for the life of a process."""
    script = folder / "program.py"
    script.write_text(program)
    ran = subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, check=False, timeout=100, cwd=folder
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_decoders_are_heard_in_the_loops_own_process(tmp_path):
    for found in printed(PROGRAM, tmp_path).values():
        assert found["uses"]["decode"] >= 0.02
        assert found["uses"].get("read", 0) < 0.01
        assert found["is_listening"]
        assert found["opened"] == []
        assert found["without"]["decode"] < 1 / 3
        assert found["without"]["read decode"] < 1 / 3
        assert found["without"]["read"] > 1 / 3


OWN = """
import json, pathlib, sys
from headrace.doctor.lab import spies
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.recorder import FlightRecorder
bench = Bench(FlightRecorder.create())
spies.install(bench)

import io
import numpy as np
from PIL import Image
import headrace as hr
from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.timing.accounting import Account
from headrace.doctor.timing.knock_out import without_stages

folder = pathlib.Path(sys.argv[1])
(folder / "photos").mkdir()
for number in range(24):
    Image.new("RGB", (64, 48), (number, 0, 0)).save(folder / "photos" / f"{number:02}.png")


def decoded(record):
    return np.asarray(Image.open(io.BytesIO(record.data)).convert("L")).copy()


def without(loader, stage):
    twin = without_stages(Subject(loader), loader, [stage], bench)
    try:
        return [list(batch.shape) for batch in twin]
    except CannotExamine as error:
        return error.what
    finally:
        twin._runner.close()


found = []
for options in ({}, {"num_workers": 2}, {"num_workers": 2, "runner": "threads"}):
    loader = hr.DataLoader(hr.folder(folder / "photos", labels=False).map(decoded), batch_size=4, **options)
    kept = Account(folder / f"notes{len(found)}")
    with bench.holding(None, None, stage="loop"):
        list(kept.wrap(Subject(loader), loader))
    uses = {one.stage: one.wall_s for one in kept.read()[0]}
    found.append([uses, without(loader, "transform"), without(loader, "sample")])
print(json.dumps(found))
"""


def test_stages_of_a_plan_that_decode_are_not_left_out_as_transforms(tmp_path):
    for uses, transform, sample in printed(OWN, tmp_path):
        assert {"read", "decode", "collate"} <= uses.keys()
        assert transform.startswith("the stages of its plan decode as well")
        assert sample == [[4, 48, 64]] * 6
