import shutil

import torch
from flowers import make_photos
from timm.data import create_dataset, create_loader


def make_loaders():
    root = make_photos()
    shutil.rmtree(root / "validation" / "daisy")
    loaders = []
    for split in ("train", "validation"):
        training = split == "train"
        dataset = create_dataset("", root=str(root), split=split, is_training=training, batch_size=8)
        loaders.append(
            create_loader(
                dataset, input_size=(3, 64, 64), batch_size=8, is_training=training, use_prefetcher=True,
                num_workers=1, pin_memory=False, device=torch.device("cpu"),
            )
        )
    return tuple(loaders)
