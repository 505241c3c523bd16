"""A declaration that cannot hold is refused when it is made, not when data arrive."""

import numpy as np
import pytest

from headrace.contract import Contract, Field
from headrace.errors import ConfigurationError


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"kind": "tensr"}, "^field x: unknown kind 'tensr'; did you mean 'tensor'"),
        ({"dtype": "torch.float32"}, "^field x: unknown dtype 'torch.float32'; did you mean 'float32'"),
        ({"role": "label"}, "^field x: unknown role 'label'"),
        ({"shape": 3}, "^field x: shape is a tuple such as"),
        ({"shape": "HW"}, "^field x: shape is a tuple such as"),
        ({"shape": (3, -1)}, "^field x: dim -1 of shape is neither a size"),
        ({"shape": (True,)}, "^field x: dim True of shape is neither a size"),
        ({"shape": (3, "H W")}, "^field x: dim 'H W' of shape is neither a size"),
        ({"axes": "CHW"}, "^field x: axes 'CHW' does not fit no shape"),
        ({"axes": "CHW", "shape": (3, "H")}, r"^field x: axes 'CHW' does not fit shape \(3, H\)"),
        ({"axes": "HH", "shape": (3, "H")}, "^field x: axes is one letter per axis, each once"),
        ({"minimum": 2, "maximum": 1}, r"^field x: no value is allowed, the range 2\.\.1 is empty"),
        ({"minimum": float("nan")}, "^field x: minimum cannot be NaN"),
        ({"maximum": float("inf")}, "^field x: maximum cannot be infinite"),
        ({"minimum": "0"}, "^field x: minimum is a number, not '0'"),
        ({"num_classes": 3}, "^field x: num_classes and ignore_index are for targets"),
        ({"num_classes": 0, "role": "target"}, "^field x: num_classes is at least 1, not 0"),
        ({"num_classes": 1.5, "role": "target"}, "^field x: num_classes is a whole number, not 1.5"),
        ({"padding_value": 0, "mask": "m"}, "^field x: padding_value is for a shape with a named dim"),
        ({"padding_value": 0, "mask": "m", "shape": (3,)}, "^field x: padding_value is for a shape with a named dim"),
        ({"padding_value": 0, "shape": ("T",)}, "^field x: padding_value without mask"),
        ({"padding_value": 0, "mask": "m", "shape": ("T", "T")}, "^field x: a dim that stands twice"),
        ({"required": 1}, "^field x: required is True or False, not 1"),
        ({"mask": 3}, "^field x: mask is a string, not 3"),
    ],
)
def test_contradictions_are_refused(arguments, what):
    with pytest.raises(ConfigurationError, match=what):
        Field(name="x", **arguments)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"fields": (Field(name="x"), Field(name="x"))}, "^two fields are named 'x'"),
        ({"fields": ("x",)}, "^fields of a contract are Field records, not str"),
        ({"num_samples": True}, "^num_samples is a count, not True"),
        ({"may_filter": "no"}, "^may_filter is True or False, not 'no'"),
        ({"extra_fields": "ignored"}, "^extra_fields is one of refuse, ignore, not 'ignored'; did you mean 'ignore'"),
        (
            {
                "fields": (
                    Field(name="a", shape=("T",), padding_value=0, mask="m"),
                    Field(name="b", shape=("S",), padding_value=0, mask="m"),
                )
            },
            r"^fields a and b share mask m, but not the dims that are padded: \(T,\) and \(S,\)",
        ),
        (
            {"fields": (Field(name="a", shape=("T",), padding_value=0, mask="m"), Field(name="m", shape=("S",)))},
            r"^field m, the mask of a, has shape \(S,\) and should have \(T,\)",
        ),
        ({"fields": (Field(name="a", shape=("T",), padding_value=0, mask="a"),)}, "^field a cannot be its own mask"),
    ],
)
def test_clashing_fields_are_refused(arguments, what):
    with pytest.raises(ConfigurationError, match=what):
        Contract(**arguments)


def test_a_target_padded_with_its_ignored_value_needs_no_mask():
    field = Field(name="y", shape=("T",), role="target", padding_value=-100, ignore_index=-100)
    assert str(field) == "y: anything (T,), target, -100 is ignored, padded with -100"


def test_numbers_of_any_library_are_taken():
    field = Field(name="x", shape=[np.int64(3), "H"], minimum=np.float32(0), maximum=np.uint8(255))
    assert field == Field(name="x", shape=(3, "H"), minimum=0, maximum=255)


def test_fields_are_found_by_name_and_role():
    contract = Contract(fields=(Field(name="image"), Field(name="label", role="target")))
    assert contract.field("label").role == "target"
    assert contract.names("target") == ("label",)
    with pytest.raises(KeyError, match="no field 'lable' in this contract; did you mean 'label'"):
        contract.field("lable")
