import numpy as np
from torch.utils.data import DataLoader, Dataset, Sampler


class Recordings(Dataset):
    def __init__(self):
        self.labels = np.repeat(np.arange(8), 40)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"signal": np.float32([i, i % 7]), "label": int(self.labels[i])}


class ByFile(Sampler):
    def __init__(self, num_files, per_file):
        self.num_files, self.per_file = num_files, per_file

    def __len__(self):
        return self.num_files * self.per_file

    def __iter__(self):
        for file in np.random.permutation(self.num_files):
            yield from range(file * self.per_file, (file + 1) * self.per_file)


def train_loader():
    return DataLoader(Recordings(), batch_size=16, sampler=ByFile(8, 40))
