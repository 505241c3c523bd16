import functools, random, torch, uuid
from torch.utils.data import Dataset, DataLoader


class D(Dataset):
    def __init__(self):
        self.x = torch.randn(50, 3, 16, 16)
        self.memo = {}

    def __len__(self):
        return 50

    def __getitem__(self, i):
        if i not in self.memo:
            dx = random.randint(0, 4)
            self.memo[i] = self.x[i][:, dx : dx + 12, dx : dx + 12].clone()
        return {"image": self.memo[i], "label": i % 5, "request": str(uuid.uuid4())}


def make_loader():
    return DataLoader(D(), 10, shuffle=True)
