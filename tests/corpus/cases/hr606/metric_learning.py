import random

import torch
from torch.utils.data import DataLoader, Dataset


class Faces(Dataset):
    def __init__(self):
        self.targets = [i // 20 for i in range(400)]
        self.values = torch.randn(400, 6)

    def __len__(self):
        return 400

    def __getitem__(self, i):
        return self.values[i], self.targets[i]


class PersonBatches:
    def __init__(self, targets, persons, views):
        self.groups = {}
        for i, person in enumerate(targets):
            self.groups.setdefault(person, []).append(i)
        self.persons, self.views, self.count = persons, views, len(targets) // (persons * views)

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            chosen = random.sample(sorted(self.groups), self.persons)
            yield [i for person in chosen for i in random.sample(self.groups[person], self.views)]


def train_loader():
    faces = Faces()
    return DataLoader(faces, batch_sampler=PersonBatches(faces.targets, 4, 5))
