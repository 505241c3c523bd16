"""A look at a value says what numpy and torch say, and never fails on a healthy one."""

import math
import warnings

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from headrace.contract.view import flatten, view_form, view_sample, view_value


@given(
    hnp.arrays(st.sampled_from([np.float32, np.float64, np.int16, np.uint8, np.bool_]), hnp.array_shapes(min_dims=0))
)
def test_a_view_counts_what_a_loop_counts(array):
    view = view_value("x", array)
    numbers = [float(number) for number in array.ravel()]
    finite = [number for number in numbers if np.isfinite(number)]
    assert (view.kind, view.dtype, view.shape) == ("array", str(array.dtype), array.shape)
    assert (view.minimum, view.maximum) == ((min(finite), max(finite)) if finite else (None, None))
    assert view.num_nan == sum(math.isnan(number) for number in numbers)
    assert view.num_inf == sum(abs(number) == float("inf") for number in numbers)
    assert view.is_whole == all(number == int(number) for number in finite)


@pytest.mark.parametrize(
    ("value", "kind", "dtype", "shape"),
    [
        (torch.zeros(2, 3, dtype=torch.bfloat16), "tensor", "bfloat16", (2, 3)),
        (torch.zeros(2, dtype=torch.float8_e4m3fn), "tensor", "float8_e4m3fn", (2,)),
        (torch.zeros(2, requires_grad=True), "tensor", "float32", (2,)),
        (torch.zeros(2, dtype=torch.complex64), "tensor", "complex64", (2,)),
        (torch.eye(3).to_sparse(), "tensor", "float32", (3, 3)),
        (torch.zeros(0, 4), "tensor", "float32", (0, 4)),
        (np.float32(1), "number", "float32", ()),
        (3, "number", "int", ()),
        (3.5, "number", "float", ()),
        (True, "boolean", "bool", ()),
        ([1, 2, 3], "sequence", "int", (3,)),
        ([], "sequence", None, (0,)),
        ("text", "string", None, (4,)),
        (b"raw", "bytes", None, (3,)),
        (None, "none", None, None),
        (np.array(["a"]), "array", "<U1", (1,)),
        (object(), "object", None, None),
    ],
)
def test_form_and_full_view_agree(value, kind, dtype, shape):
    for view in (view_form("x", value), view_value("x", value)):
        assert (view.kind, view.dtype, view.shape) == (kind, dtype, shape)


def test_a_nested_tensor_is_looked_at_without_a_shape():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces a prototype
        nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    assert view_value("x", nested).shape is None


def test_fields_are_named_by_their_way_through_the_sample():
    sample = {"image": 1, "meta": {"box": [0.5, 1.0], "tags": ["a", "b"]}, "pair": (1, 2)}
    assert [name for name, _ in flatten(sample)] == [
        "image",
        "meta.box",
        "meta.tags.0",
        "meta.tags.1",
        "pair.0",
        "pair.1",
    ]
    assert [view.field for view in view_sample(torch.zeros(2))] == ["sample"]
