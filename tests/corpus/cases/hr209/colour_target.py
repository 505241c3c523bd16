import tempfile

import numpy as np
import torch
import voc_style
from PIL import Image
from torch.utils.data import DataLoader


class WithColour(voc_style.VocStyle):
    def __getitem__(self, index):
        image, _ = super().__getitem__(index)
        name = self.names[index].replace(".jpg", ".png")
        target = Image.open(f"{self.root}/SegmentationClass/{name}").convert("RGB")
        return {"pixels": image, "target": torch.from_numpy(np.array(target).transpose(2, 0, 1))}


def make_loader():
    root = tempfile.mkdtemp()
    voc_style.write_voc(root)
    return DataLoader(WithColour(root), batch_size=3)
