"""Laws of a contract as a value: TOML round trip, digest, diff and pickle agree on what is equal."""

import pickle
import tomllib

import hypothesis.strategies as st
import pytest
from hypothesis import given

from headrace.contract import Contract, Field
from headrace.contract.field import DTYPES, KINDS, ROLES

# Everything that can be encoded: quotes, dots, control characters, emoji, the empty string.
NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
DIMS = st.one_of(st.integers(0, 5), st.sampled_from(["B", "C", "H", "W", "T", "größe"]))
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 0.0, -0.0, 1e300]),
)


@st.composite
def fields(draw, name=NAMES):
    shape = draw(st.none() | st.lists(DIMS, max_size=4, unique=True).map(tuple))
    role = draw(st.sampled_from(ROLES))
    bounds = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2)))
    num_classes = draw(st.none() | st.integers(1, 9)) if role == "target" else None
    mask = draw(st.none() | NAMES)
    is_padded = mask is not None and any(isinstance(dim, str) for dim in shape or ()) and draw(st.booleans())
    return Field(
        name=draw(name),
        kind=draw(st.none() | st.sampled_from(KINDS)),
        dtype=draw(st.none() | st.sampled_from(DTYPES)),
        shape=shape,
        axes="CHWT"[: len(shape)] if shape and draw(st.booleans()) else None,
        minimum=None if num_classes or draw(st.booleans()) else bounds[0],
        maximum=None if num_classes or draw(st.booleans()) else bounds[1],
        allow_nan=draw(st.booleans()),
        allow_inf=draw(st.booleans()),
        role=role,
        num_classes=num_classes,
        ignore_index=draw(st.none() | st.integers(-100, 300)) if role == "target" else None,
        padding_value=draw(NUMBERS | st.just(float("-inf"))) if is_padded else None,
        mask=mask,
        required=draw(st.booleans()),
    )


@st.composite
def contracts(draw):
    names = draw(st.lists(NAMES, max_size=4, unique=True))
    parts = [draw(fields(st.just(name))) for name in names]
    # A mask is shared only by fields that agree on its dims; here each padded field has one of its own.
    parts = [
        Field(**{**_arguments(part), "mask": f"mask of {part.name}"}) if part.mask is not None else part
        for part in parts
    ]
    return Contract(
        fields=tuple(parts),
        num_samples=draw(st.none() | st.integers(0, 2**48)),
        may_filter=draw(st.booleans()),
        may_reshape=draw(st.booleans()),
        incomplete=draw(st.sampled_from(["refuse", "skip", "replace"])),
        extra_fields=draw(st.sampled_from(["refuse", "ignore"])),
    )


def _arguments(field):
    return {key: getattr(field, key) for key in Field.__dataclass_fields__}


@given(contracts())
def test_a_contract_survives_toml(contract):
    text = contract.to_toml()
    again = Contract.from_toml(text)
    assert again == contract
    assert [field.name for field in again.fields] == [field.name for field in contract.fields]
    assert again.to_toml() == text


@given(contracts())
def test_the_file_says_what_the_contract_says(contract):
    # Read around our own reader: plain TOML, whose values are the attributes.
    table = tomllib.loads(contract.to_toml())
    assert list(table.get("fields", {})) == [field.name for field in contract.fields]
    for field in contract.fields:
        stated = table["fields"][field.name]
        for key in Field.__dataclass_fields__:
            if key in stated:
                value = getattr(field, key)
                assert stated[key] == (list(value) if isinstance(value, tuple) else value)


def test_a_contract_survives_a_file(tmp_path):
    contract = Contract(fields=(Field(name='odd "name"\n.é', shape=(3, "H", "W"), axes="CHW"),), num_samples=4)
    contract.save(tmp_path / "contract.toml")
    assert Contract.load(tmp_path / "contract.toml") == contract


@given(contracts(), contracts())
def test_equal_contracts_and_only_they_agree_on_digest_and_diff(a, b):
    is_equal = a == b
    assert (a.digest() == b.digest()) == is_equal
    assert bool(a.diff(b)) == (not is_equal)
    assert not a.diff(a)
    assert hash(a) == hash(pickle.loads(pickle.dumps(a)))


@pytest.mark.parametrize(("low", "high"), [(0, 255), (0.0, 255.0), (-0.0, 255)])
def test_numbers_that_are_equal_make_contracts_that_are_equal(low, high):
    contract = Contract(fields=(Field(name="x", minimum=low, maximum=high),))
    expected = Contract(fields=(Field(name="x", minimum=0, maximum=255),))
    assert (contract, contract.to_toml(), contract.digest()) == (expected, expected.to_toml(), expected.digest())


def test_the_digest_is_the_same_on_every_machine():
    contract = Contract(fields=(Field(name="image", kind="tensor", dtype="uint8", shape=(3, "H", "W")),), num_samples=4)
    assert contract.digest() == "b5bec3ed352e6608e2b1fc41013ee030"


def test_a_diff_reads_like_a_review():
    before = Contract(
        fields=(
            Field(name="image", kind="tensor", dtype="uint8", shape=(3, "H", "W"), minimum=0, maximum=255),
            Field(name="label", kind="number", dtype="int", shape=(), role="target", num_classes=10),
        ),
        num_samples=1797,
    )
    after = Contract(
        fields=(
            Field(name="image", kind="tensor", dtype="float32", shape=(3, 224, 224), minimum=0, maximum=1),
            Field(name="mask", kind="tensor", dtype="bool", shape=("T",), role="mask", required=False),
        ),
        num_samples=1800,
        may_filter=True,
    )
    assert str(before.diff(after)).splitlines() == [
        "- num_samples: 1797",
        "+ num_samples: 1800",
        "- may_filter: False",
        "+ may_filter: True",
        "- image: tensor uint8 (3, H, W) 0..255",
        "+ image: tensor float32 (3, 224, 224) 0..1",
        "- label: number int (), target, 10 classes",
        "+ mask: tensor bool (T,), mask, optional",
    ]
    assert str(before.diff(before)) == "no difference"


def test_a_new_order_of_fields_is_a_change():
    a, b = Field(name="a"), Field(name="b")
    assert str(Contract(fields=(a, b)).diff(Contract(fields=(b, a)))) == "- order: a, b\n+ order: b, a"
