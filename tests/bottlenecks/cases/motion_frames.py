"""Windows over a recording; the capture program writes one file for each frame."""

import pathlib
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOW = 192


def write_recording(folder, frames=2048):
    rng = np.random.default_rng(3)
    for number in range(frames):
        (folder / f"{number:06}.f32").write_bytes(rng.standard_normal(24, dtype=np.float32).tobytes())
    return folder


class Windows(Dataset):
    def __init__(self, folder, frames=2048):
        self.folder = folder
        self.starts = range(0, frames - WINDOW)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        start = self.starts[index]
        frames = []
        for number in range(start, start + WINDOW):
            with open(self.folder / f"{number:06}.f32", "rb") as file:
                frames.append(file.read())
        joints = np.frombuffer(b"".join(frames), np.float32).reshape(WINDOW, 24)
        return torch.from_numpy(joints.copy())


def make_loader():
    folder = write_recording(pathlib.Path(tempfile.mkdtemp()))
    return DataLoader(Windows(folder), batch_size=16, shuffle=True, num_workers=0)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, 24))
    optimizer = torch.optim.Adam(model.parameters())

    def train_step(joints):
        loss = (model(joints[:, :-1]) - joints[:, 1:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
