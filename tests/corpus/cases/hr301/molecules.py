import torch
from torch.utils.data import Dataset, DataLoader


class Graphs(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        n = 4 + i % 7
        return {
            "x": torch.rand(n, 15 if i == 22 else 16),
            "edge_index": torch.randint(0, n, (2, 3 * n)),
            "y": torch.tensor([float(i % 2)]),
        }


def merge(gs):
    off, xs, es = 0, [], []
    for g in gs:
        xs.append(g["x"])
        es.append(g["edge_index"] + off)
        off += len(g["x"])
    return {"x": torch.cat(xs), "edge_index": torch.cat(es, 1), "y": torch.cat([g["y"] for g in gs])}


def make_loader():
    return DataLoader(Graphs(), 8, shuffle=True, collate_fn=merge)
