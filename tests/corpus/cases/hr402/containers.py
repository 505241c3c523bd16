import torch


class Boxes:
    __slots__ = ("xyxy",)

    def __init__(self, xyxy):
        self.xyxy = xyxy

    def __len__(self):
        return len(self.xyxy)


class PinnedBatch:
    def __init__(self, samples):
        self.x = torch.stack([x for x, _ in samples])
        self.y = torch.tensor([y for _, y in samples])

    def pin_memory(self):
        self.x = self.x.pin_memory()
        self.y = self.y.pin_memory()
        return self
