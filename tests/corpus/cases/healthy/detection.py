"""Object detection finetuning: images of many sizes, targets as dicts, a collate that keeps lists."""
import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset


class PennFudanLike(Dataset):
    def __init__(self, root, train):
        self.root, self.train = root, train
        self.imgs = sorted(os.listdir(os.path.join(root, "PNGImages")))
        self.masks = sorted(os.listdir(os.path.join(root, "PedMasks")))

    def __getitem__(self, idx):
        img = np.array(Image.open(os.path.join(self.root, "PNGImages", self.imgs[idx])).convert("RGB"))
        mask = torch.from_numpy(np.array(Image.open(os.path.join(self.root, "PedMasks", self.masks[idx]))))
        obj_ids = torch.unique(mask)[1:]
        masks = (mask == obj_ids[:, None, None]).to(torch.uint8)
        boxes = []
        for one in masks:
            rows, cols = torch.where(one)
            boxes.append([cols.min(), rows.min(), cols.max() + 1, rows.max() + 1])
        img = torch.from_numpy(img).permute(2, 0, 1).float() / 255
        boxes = torch.tensor(boxes, dtype=torch.float32)
        if self.train and torch.rand(1) < 0.5:
            img, masks = img.flip(-1), masks.flip(-1)
            boxes = torch.stack([img.shape[-1] - boxes[:, 2], boxes[:, 1], img.shape[-1] - boxes[:, 0], boxes[:, 3]], 1)
        target = {"boxes": boxes, "masks": masks, "labels": torch.ones(len(boxes), dtype=torch.int64), "image_id": idx}
        return img, target

    def __len__(self):
        return len(self.imgs)


def collate_fn(batch):
    return tuple(zip(*batch))


def make_loaders():
    root = tempfile.mkdtemp()
    for name in ("PNGImages", "PedMasks"):
        os.makedirs(os.path.join(root, name))
    rng = np.random.default_rng(0)
    for number in range(60):
        h, w = rng.integers(60, 90, 2)
        Image.fromarray(rng.integers(0, 255, (h, w, 3), dtype=np.uint8)).save(f"{root}/PNGImages/{number:03d}.png")
        mask = np.zeros((h, w), np.uint8)
        mask[5:30, 5:20], mask[20:50, 30:45] = 1, 2
        Image.fromarray(mask).save(f"{root}/PedMasks/{number:03d}_mask.png")
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1)).tolist()
    train = Subset(PennFudanLike(root, train=True), order[:-15])
    test = Subset(PennFudanLike(root, train=False), order[-15:])
    return (
        DataLoader(train, batch_size=2, shuffle=True, collate_fn=collate_fn),
        DataLoader(test, batch_size=1, shuffle=False, collate_fn=collate_fn),
    )
