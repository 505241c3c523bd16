"""Few-shot episodes by a batch sampler of one's own."""
import torch
from torch.utils.data import DataLoader, Dataset, Sampler


class Glyphs(Dataset):
    def __init__(self, classes=12, per_class=15):
        self.targets = torch.arange(classes).repeat_interleave(per_class)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(int(index))
        return torch.rand(1, 14, 14, generator=generator), int(self.targets[index])


class EpisodeSampler(Sampler):
    def __init__(self, targets, ways, shots, episodes):
        self.by_class = [torch.where(targets == c)[0] for c in targets.unique()]
        self.ways, self.shots, self.episodes = ways, shots, episodes

    def __len__(self):
        return self.episodes

    def __iter__(self):
        for _ in range(self.episodes):
            chosen = torch.randperm(len(self.by_class))[: self.ways]
            yield torch.cat([self.by_class[c][torch.randperm(len(self.by_class[c]))[: self.shots]] for c in chosen]).tolist()


def make_loader():
    data = Glyphs()
    return DataLoader(data, batch_sampler=EpisodeSampler(data.targets, ways=5, shots=4, episodes=40), num_workers=2)
