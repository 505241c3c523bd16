import torch


def augment(wave, strength=0.05):
    wave = wave + strength * torch.randn_like(wave)
    shift = int(torch.randint(0, wave.shape[-1], ()))
    return torch.roll(wave, shift, dims=-1)
