import numpy as np
import torch
from scaling import ScaleBoxes, Street
from torch.utils.data import DataLoader, Subset


def collate(samples):
    images, targets = zip(*samples)
    return torch.stack(images), list(targets)


def make_loader():
    street = Street(num_images=40, transforms=ScaleBoxes(0.5))
    order = np.random.default_rng(0).permutation(len(street))
    return DataLoader(Subset(street, order[:32].tolist()), batch_size=4, shuffle=True, collate_fn=collate)
