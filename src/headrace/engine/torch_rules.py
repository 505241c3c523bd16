"""Whether torch's default rules for joining samples are still torch's own: its documentation allows to add to them."""

from __future__ import annotations

import numpy as np

__all__ = ["has_torch_rules"]


def has_torch_rules() -> bool:
    """True unless somebody has replaced or added to torch's table of collate functions, as its documentation allows."""
    import torch
    from torch.utils.data._utils import collate as rules

    known = {
        torch.Tensor: rules.collate_tensor_fn,
        np.ndarray: rules.collate_numpy_array_fn,
        (np.bool_, np.number, np.object_): rules.collate_numpy_scalar_fn,
        float: rules.collate_float_fn,
        int: rules.collate_int_fn,
        str: rules.collate_str_fn,
        bytes: rules.collate_str_fn,
    }
    return bool(rules.default_collate_fn_map == known)
