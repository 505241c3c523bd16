import pathlib
import sqlite3
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, path):
        self.db = sqlite3.connect(path, check_same_thread=False)
        (self.count,) = self.db.execute("SELECT count(*) FROM rows").fetchone()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        a, b, y = self.db.execute("SELECT a, b, y FROM rows WHERE id = ?", (index,)).fetchone()
        return torch.tensor([a, b]), torch.tensor(y)


def make_loader():
    path = pathlib.Path(tempfile.mkdtemp()) / "rows.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, a REAL, b REAL, y INTEGER)")
        db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", [(i, i / 7, i / 3, i % 2) for i in range(300)])
    return DataLoader(Rows(path), batch_size=25, num_workers=2)
