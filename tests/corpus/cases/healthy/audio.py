"""Audio clips of different lengths, padded with their lengths beside them."""
import io
import wave

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def synthesize(number):
    rate, seconds = 4000, 0.2 + number % 5 / 20
    samples = (8000 * np.sin(np.arange(int(rate * seconds)) * (number % 9 + 1) / 20)).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.tobytes())
    return buffer.getvalue()


class Speech(Dataset):
    labels = ["yes", "no", "up"]

    def __init__(self):
        self.clips = [synthesize(number) for number in range(100)]

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        with wave.open(io.BytesIO(self.clips[index])) as clip:
            samples = np.frombuffer(clip.readframes(clip.getnframes()), "<i2").astype(np.float32) / 32768
        return torch.from_numpy(samples), index % 3


def collate(batch):
    waveforms, targets = zip(*batch)
    lengths = torch.tensor([len(one) for one in waveforms])
    padded = torch.nn.utils.rnn.pad_sequence(waveforms, batch_first=True)
    return padded, lengths, torch.tensor(targets)


def make_loader():
    return DataLoader(Speech(), batch_size=10, shuffle=True, collate_fn=collate, num_workers=2)
