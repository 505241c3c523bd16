"""Lets torchvision be imported beside a PyTorch that its compiled operators were not built for; imported for that alone.

MosaicML Streaming imports torchvision whatever it is used for, and an index may have it for another build of PyTorch
only. None of its operators is called here, so it is enough that those it describes when imported have a name.
"""

from __future__ import annotations

import torch

OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    OPERATORS.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
