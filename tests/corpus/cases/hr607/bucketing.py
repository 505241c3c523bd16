import torch


class LengthBuckets:
    """Batches of sentences of similar length, different in each epoch."""

    def __init__(self, lengths, batch_size, rank=0, world_size=1, seed=0):
        self.lengths = torch.as_tensor(lengths)
        self.batch_size, self.rank, self.world_size, self.seed = batch_size, rank, world_size, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.lengths) // (self.batch_size * self.world_size)

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        noise = torch.rand(len(self.lengths), generator=generator) * 8
        order = (self.lengths + noise).argsort().tolist()
        size = self.batch_size * self.world_size
        starts = torch.randperm(len(self), generator=generator).tolist()
        for start in starts:
            batch = order[start * size : (start + 1) * size]
            yield batch[self.rank :: self.world_size]
