"""Nine ways in which a loader silently delivers something else: each is caught at its level, with the first sample."""

SWAPPED = """
class Swapped(Pictures):
    def __getitem__(self, row):
        sample = super().__getitem__(row)
        if row in (11, 26):
            sample["label"] = (37 - row) % 7
        return sample

def right(): return DataLoader(Pictures(), batch_size=8, shuffle=True)
def other(): return DataLoader(Swapped(), batch_size=8, shuffle=True)
"""


def test_two_swapped_labels(compared, verdicts):
    found = compared(SWAPPED)
    assert verdicts(found) == "E0= E1= E2! E3="
    two = found.first_level
    assert (two.first.field, two.num_different, two.num_compared) == ("label", 4, 80)
    assert two.first.sample_id in {11, 26}
    assert two.first.max_difference == 1


DROPPED = """
def right(): return DataLoader(Pictures(), batch_size=12)
def other(): return DataLoader(Pictures(), batch_size=12, drop_last=True)
"""


def test_the_dropped_last_batch(compared, verdicts):
    found = compared(DROPPED)
    assert verdicts(found) == "E0! E1! E2= E3="
    assert found.first_level.first.sample_id == 36
    assert (found.first_level.first.in_a, found.first_level.first.in_b) == ("delivered once", "not delivered")
    assert "4 more in A; B leaves out its incomplete last batch" in found.first_level.reason


SHARDS = """
class Shards(IterableDataset):
    def __init__(self, names):
        self.names = names
    def __iter__(self):
        for name in self.names:
            for number in range(10):
                yield {"__key__": f"{name}/{number:03d}", "x": np.full(4, number), "y": number % 3}

def right(): return DataLoader(Shards(["a", "b", "c"]), batch_size=5)
def other(): return DataLoader(Shards(["a", "b", "b", "c"]), batch_size=5)
"""


def test_a_duplicated_shard(compared, verdicts):
    found = compared(SHARDS)
    assert verdicts(found).startswith("E0! E1!")
    assert found.ids == "keys"
    assert found.first_level.first.sample_id == "b/000"
    assert found.first_level.first.in_b == "delivered twice"
    assert found.first_level.num_different == 10


SEEDED = """
def seed_worker(worker):
    random.seed(3)

def right(): return DataLoader(Flipped(64), batch_size=8, num_workers=2)
def other(): return DataLoader(Flipped(64), batch_size=8, num_workers=2, worker_init_fn=seed_worker)
"""


def test_equal_worker_seeds(compared, verdicts):
    found = compared(SEEDED)
    assert verdicts(found) == "E0= E1= E2= E4!"
    assert found.policy == "stream"
    four = found.first_level
    assert "workers of B draw the same random numbers (random)" in four.reason
    # Batches of eight are dealt out in turn: the other worker begins with the second.
    assert four.first.sample_id in range(8, 16)
    assert four.first.in_a == "no draws are shared"


REPEATING = """
def seed_worker(worker):
    random.seed(worker)

def right(): return DataLoader(Flipped(64), batch_size=8, shuffle=True, num_workers=2)
def other(): return DataLoader(Flipped(64), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
"""


def test_worker_seeds_that_ignore_the_epoch(compared, verdicts):
    found = compared(REPEATING)
    assert verdicts(found) == "E0= E1= E2= E4!"
    assert "epochs of B draw the same random numbers (random)" in found.first_level.reason


CHANNELS = """
class Swapped(Pictures):
    def picture(self, row):
        return super().picture(row)[::-1].copy()

def right(): return DataLoader(Pictures(), batch_size=8)
def other(): return DataLoader(Swapped(), batch_size=8)
"""


def test_red_and_blue_exchanged(compared, verdicts):
    found = compared(CHANNELS)
    assert verdicts(found) == "E0= E1= E2= E3!"
    first = found.first_level.first
    assert (first.sample_id, first.field, first.position) == (0, "image", 0)
    assert first.in_a.startswith("uint8[3, 6, 6], digest ")
    assert 0 < first.differing_share < 1
    assert found.first_level.num_different == 80


RESUMED = """
class After:
    def __init__(self, place):
        self.place = place
    def __iter__(self):
        return iter(range(self.place, 40))
    def __len__(self):
        return 40 - self.place

def right(): return DataLoader(Pictures(), batch_size=8, sampler=After(16))
def other(): return DataLoader(Pictures(), batch_size=8, sampler=After(17))
"""


def test_a_resume_that_is_off_by_one(compared, verdicts):
    found = compared(RESUMED)
    assert verdicts(found) == "E0! E1! E2= E3="
    zero, one = found.levels[:2]
    assert (zero.first.sample_id, zero.num_different) == (16, 1)
    assert (one.first.position, one.first.in_a, one.first.in_b) == (0, "16", "17")


STALE = """
class Cached(Pictures):
    def picture(self, row):
        return super().picture(row) if row != 13 else np.random.default_rng(999).integers(0, 256, (3, 6, 6), dtype=np.uint8)

def right(): return DataLoader(Pictures(), batch_size=8, shuffle=True)
def other(): return DataLoader(Cached(), batch_size=8, shuffle=True)
"""


def test_a_stale_entry_of_a_cache(compared, verdicts):
    found = compared(STALE)
    assert verdicts(found) == "E0= E1= E2= E3!"
    assert (found.first_level.first.sample_id, found.first_level.num_different) == (13, 2)


SUBSTITUTED = """
class Careful(Pictures):
    def picture(self, row):
        if row == 21:
            raise OSError("image file is truncated")
        return super().picture(row)
    def __getitem__(self, row):
        try:
            return super().__getitem__(row)
        except OSError:
            return self[row + 1]

def right(): return DataLoader(Pictures(), batch_size=8)
def other(): return DataLoader(Careful(), batch_size=8)
"""


def test_another_sample_in_place_of_one_that_cannot_be_decoded(compared, verdicts):
    found = compared(SUBSTITUTED)
    assert verdicts(found) == "E0= E1= E2! E3!"
    assert {one.first.sample_id for one in found.levels if one.verdict == "differs"} == {21}


TOKENS = """
class Texts(Dataset):
    texts = ["plain words", "don't split", "more plain words", "it's two"] * 6
    def __init__(self, version):
        self.version = version
    def __len__(self):
        return len(self.texts)
    def __getitem__(self, row):
        text = self.texts[row]
        words = text.split() if self.version == 1 else text.replace("'", " '").split()
        return {"input_ids": [sum(map(ord, word)) for word in words], "label": row % 2}

def join(samples):
    return samples

def right(): return DataLoader(Texts(1), batch_size=4, collate_fn=join)
def other(): return DataLoader(Texts(2), batch_size=4, collate_fn=join)
"""


def test_another_version_of_the_tokenizer(compared, verdicts):
    found = compared(TOKENS)
    assert verdicts(found) == "E0= E1= E2= E3!"
    first = found.first_level.first
    assert (first.sample_id, first.field) == (1, "input_ids")
    assert first.in_a.startswith("int64[2]")
    assert first.in_b.startswith("int64[3]")
