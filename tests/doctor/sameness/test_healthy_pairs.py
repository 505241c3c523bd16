"""Pairs that do deliver the same data, however different they are set up; and pairs of which it cannot be said."""

MAPPED = """
def right(): return DataLoader(Pictures(), batch_size=8, shuffle=True)
"""


def test_no_workers_and_two(compared, verdicts):
    found = compared(MAPPED, "right", workers=(0, 2), levels=("E0", "E1", "E2", "E3", "E4", "E5"))
    assert verdicts(found) == "E0= E1= E2= E3= E5="
    assert (found.verdict, found.exit_status) == ("same", 0)
    assert (found.side_a.num_workers, found.side_b.num_workers) == (0, 2)
    assert found.side_b.num_samples == (40, 40)


OURS = """
ORDER = [(7 * place) % 40 for place in range(40)]

def right(): return DataLoader(Pictures(), batch_size=8, sampler=ORDER)
def other(): return hr.DataLoader(Pictures(), batch_size=8, sampler=ORDER, num_workers=2)
"""


def test_torchs_loader_and_ours_under_one_sampler(compared, verdicts):
    found = compared(OURS, levels=("E0", "E1", "E2", "E3", "E4", "E5"))
    assert verdicts(found) == "E0= E1= E2= E3= E5="


SPAWNED = """
def right(): return DataLoader(Flipped(), batch_size=8, num_workers=1, multiprocessing_context="fork")
def other(): return DataLoader(Flipped(), batch_size=8, num_workers=1, multiprocessing_context="spawn")
"""


def test_forked_and_spawned_workers_of_augmented_data(compared, verdicts):
    found = compared(SPAWNED, num_epochs=1)
    assert verdicts(found) == "E0= E1= E2= E4="
    assert found.policy == "counter"  # one worker on each side, one seed: even the draws are the same


AUGMENTED = """
class Held(Pictures):
    '''Has a generator of its own, and gives each worker its own stream.'''
    def __init__(self):
        super().__init__()
        self.rng = None
    def __getitem__(self, row):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed())
        sample = super().__getitem__(row)
        return {**sample, "image": sample["image"] + self.rng.integers(0, 9, dtype=np.uint8)}

def right(): return DataLoader(Flipped(), batch_size=8, shuffle=True)
def held(): return DataLoader(Held(), batch_size=8, shuffle=True)
def ours(): return hr.DataLoader(Flipped(), batch_size=8, shuffle=True, seed=5)
"""


def test_augmentation_that_workers_draw_in_their_own_order(compared, verdicts):
    found = compared(AUGMENTED, "right", workers=(0, 2))
    assert verdicts(found) == "E0= E1= E2= E4="
    assert found.policy == "stream"


def test_augmentation_that_is_drawn_by_key(write_file, verdicts):
    from headrace.doctor.sameness.compare import compare

    target = write_file(AUGMENTED)("ours")
    found = compare(target, target, workers=(0, 2))
    assert verdicts(found) == "E0= E1= E2= E4="
    assert found.policy == "counter"


def test_augmentation_from_a_generator_of_the_data_sets_own(write_file, verdicts):
    from headrace.doctor.sameness.compare import compare

    target = write_file(AUGMENTED)("held")
    found = compare(target, target, workers=(0, 2))
    assert verdicts(found) == "E0= E1= E2= E4="


SELDOM = """
class Seldom(Pictures):
    def __getitem__(self, row):
        sample = super().__getitem__(row)
        if random.random() < 0.05:
            sample["image"] = 255 - sample["image"]
        return sample

def right(): return DataLoader(Seldom(120), batch_size=8)
"""


def test_augmentation_that_is_applied_seldom_is_no_damage(compared, verdicts):
    found = compared(SELDOM, "right", workers=(0, 2))
    assert verdicts(found) == "E0= E1= E2= E4="


SAMPLERS = """
from torch.utils.data import DistributedSampler, RandomSampler

def right():
    data = Pictures(41)
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data, 2, 0, shuffle=False))

def drawn():
    data = Pictures()
    return DataLoader(data, batch_size=8, sampler=RandomSampler(data, replacement=True, num_samples=30))
"""


def test_samples_that_are_delivered_twice_on_purpose_are_explained(compared, write_file, verdicts):
    from headrace.doctor.sameness.compare import Options, compare

    found = compared(SAMPLERS, "right", workers=(0, 1), num_epochs=1)
    assert verdicts(found) == "E0= E1= E2= E3="
    assert "padded with 1 repeated samples" in " ".join(found.side_a.notes)
    target = write_file(SAMPLERS)("drawn")
    found = compare(target, target, Options(num_epochs=1), workers=(0, 1))
    assert verdicts(found) == "E0= E1= E2= E3="
    assert "replacement" in found.side_a.notes[0]


STREAMS = """
class Numbers:
    def __init__(self, last=20):
        self.last = last
    def __iter__(self):
        return iter([{"x": np.full(3, number), "y": number % 2} for number in [*range(19), self.last]])

def right(): return Numbers()
def other(): return Numbers(21)
"""


def test_a_stream_without_ids_is_told_apart_by_contents(compared, verdicts):
    found = compared(STREAMS, "right", num_epochs=1)
    assert (verdicts(found), found.ids) == ("E0= E1= E2= E3=", "contents")
    found = compared(STREAMS, num_epochs=1)
    assert verdicts(found) == "E0! E1! E2? E3?"
    assert found.first_level.first.position == 19


FAILING = """
class Failing(Pictures):
    def __getitem__(self, row):
        if row == 19:
            raise ValueError("bad record")
        return super().__getitem__(row)

def right(): return DataLoader(Pictures(), batch_size=8)
def other(): return DataLoader(Failing(), batch_size=8)
class Dying(Pictures):
    def __getitem__(self, row):
        if row == 19:
            os._exit(3)
        return super().__getitem__(row)

def dies(): return DataLoader(Dying(), batch_size=8)
def skips(): return hr.DataLoader(Failing(), batch_size=8, on_error=hr.Skip(max_rate=None))
"""


def test_a_side_that_fails_or_skips_is_not_the_same(compared, verdicts):
    found = compared(FAILING, num_epochs=1)
    assert found.verdict == "different"
    assert found.first_level.first.sample_id == 16
    assert "B stopped: ValueError: bad record" in found.first_level.reason
    found = compared(FAILING, "skips", num_epochs=1)
    assert (found.first_level.level, found.first_level.first.sample_id) == ("E0", 19)
    assert (found.side_b.refused, found.side_b.num_refused) == ((19,), 1)


def test_a_side_that_ends_the_interpreter_names_the_sample_in_hand(compared):
    found = compared(FAILING, "dies", num_epochs=1)
    assert (found.first_level.level, found.first_level.first.sample_id) == ("E0", 16)
    assert "exit status 3" in found.side_b.stopped
    assert found.side_b.stopped.endswith("in hand: sample 19")


def test_both_failing_is_no_proof(write_file):
    from headrace.doctor.sameness.compare import Options, compare

    target = write_file(FAILING)("other")
    found = compare(target, target, Options(num_epochs=1), workers=(0, 1))
    assert (found.verdict, found.exit_status) == ("inconclusive", 3)
