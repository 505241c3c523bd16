import json, os, random, tempfile, torch
from torch.utils.data import IterableDataset, DataLoader, get_worker_info

root = tempfile.mkdtemp()
r = random.Random(0)
for k in range(4):
    with open(f"{root}/part-{k:05d}.jsonl", "w") as f:
        for j in range(100):
            f.write(
                json.dumps({"id": k * 100 + j, "ids": [r.randint(1, 99) for _ in range(16)], "label": r.randint(0, 1)})
                + "\n"
            )


class JsonlStream(IterableDataset):
    def __init__(self, root, shuffle_buffer=32, seed=0):
        self.files = sorted(os.path.join(root, f) for f in os.listdir(root))
        self.buf = shuffle_buffer
        self.seed = seed

    def _lines(self):
        info = get_worker_info()
        wid, n = (info.id, info.num_workers) if info else (0, 1)
        for k, f in enumerate(self.files):
            if k % n != wid:
                continue
            with open(f) as fh:
                for line in fh:
                    yield json.loads(line)

    def __iter__(self):
        rng = random.Random(torch.initial_seed() % 2**32)
        buf = []
        for rec in self._lines():
            s = (torch.tensor(rec["ids"]), rec["label"])
            if len(buf) < self.buf:
                buf.append(s)
                continue
            j = rng.randrange(self.buf)
            out, buf[j] = buf[j], s
            yield out
        rng.shuffle(buf)
        yield from buf


def make_loader():
    return DataLoader(JsonlStream(root), batch_size=20, num_workers=2)
