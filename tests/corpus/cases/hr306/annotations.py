import torch
from torch.utils.data import DataLoader, Dataset


class Annotated(Dataset):
    def __init__(self):
        self.images = torch.rand(32, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        self.boxes = {number: [1.0, 2.0, 5.0, 6.0] for number in range(32) if number not in (6, 20)}

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        sample = {"image": self.images[index], "number": index}
        if index in self.boxes:
            sample["box"] = torch.tensor(self.boxes[index])
        return sample


def make_loader():
    return DataLoader(Annotated(), batch_size=8, shuffle=True)
