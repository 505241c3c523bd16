import torch, random
from torch.utils.data import IterableDataset, DataLoader


class S(IterableDataset):
    def __iter__(self):
        buf = []
        for i in range(2000):
            buf.append(i)
            if len(buf) >= 8:
                yield torch.tensor([float(j := buf.pop(random.randrange(8)))]), j // 400
        for j in buf:
            yield torch.tensor([float(j)]), j // 400


def make_loader():
    return DataLoader(S(), 16)
