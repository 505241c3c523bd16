"""The comparison in words: the verdict first, 80 columns, no level without its answer."""

import pytest

from headrace.doctor.evidence.equivalence import LEVELS, DeliverySide, Difference, Equivalence, LevelResult
from headrace.doctor.sameness.text import render, verdict_line


def made_up(policy=None, max_samples=None, ids="rows", **results):
    side = DeliverySide(
        spec="a/rather/long/path/to/train.py:make_loader",
        kind="torch.utils.data.DataLoader",
        num_workers=2,
        num_samples=(1200, 1200),
        refused=("broken/0017.jpg",),
        num_refused=1,
        notes=("leaves out its incomplete last batch (drop_last=True)",),
    )
    levels = []
    for level in LEVELS:
        said = results.get(level, "proven" if level != "E5" else "not asked")
        levels.append(said if isinstance(said, LevelResult) else LevelResult(level=level, verdict=said))
    return Equivalence(
        side_a=side,
        side_b=side,
        levels=tuple(levels),
        policy=policy,
        ids=ids,
        num_epochs=2,
        max_samples=max_samples,
    )


def differs(level, reason="3 of 1,200 samples", **first):
    return LevelResult(level=level, verdict="differs", reason=reason, first=Difference(**first))


ORDER = differs("E1", epoch=0, position=37, batch=2, sample_id=44, in_a="44", in_b="812")
LOSS = differs("E0", epoch=0, position=5, sample_id="cat/1.jpg", in_a="delivered once", in_b="delivered twice")
PIXELS = differs(
    "E3",
    epoch=0,
    position=7,
    sample_id=7,
    field="image",
    in_a="float32[3, 8, 8], digest 01234567",
    in_b="float32[3, 8, 8], digest 89abcdef",
    max_difference=0.0625,
    differing_share=0.5,
)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (made_up(), "the same data: proven E0-E4 on all 1,200 samples, 2 epochs"),
        (made_up(max_samples=1200), "the same data: proven E0-E4 on the first 1,200 samples, 2 epochs"),
        (
            made_up(E1="not asked"),
            "the same data: proven E0, E2, E3, E4 on all 1,200 samples, 2 epochs",
        ),
        (
            made_up(E2=LevelResult(level="E2", verdict="not asked", reason="no field is known to be a target")),
            "the same data: proven E0-E4 on all 1,200 samples, 2 epochs",
        ),
        (made_up(E1=ORDER), "not the same: from position 37 of epoch 0 on another order: 812 where 44 was"),
        (
            made_up(E0=LOSS, E1=ORDER),
            "not the same: sample cat/1.jpg is delivered once in A and delivered twice in B (position 5 of epoch 0)",
        ),
        (
            made_up(E3=PIXELS),
            (
                "not the same: field image of sample 7 is float32[3, 8, 8], digest 01234567 in A, float32[3, 8, 8], digest "
                "89abcdef in B; 50% of the values differ, by at most 0.0625"
            ),
        ),
        (
            made_up(E4=LevelResult(level="E4", verdict="not comparable", reason="no generators to set back")),
            "inconclusive: the same as far as compared (proven E0-E3); E4 cannot be compared: no generators to set back",
        ),
    ],
)
def test_the_verdict_is_one_sentence(found, line):
    assert verdict_line(found) == line
    assert render(found, width=200).startswith(f"VERDICT  {line[:150]}")


@pytest.mark.parametrize("found", [made_up(), made_up(E0=LOSS, E1=ORDER), made_up(E3=PIXELS, policy="stream")])
def test_text_fits_80_columns_and_answers_at_every_level(found):
    lines = render(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert [level for level in LEVELS if not any(line.startswith(level) for line in lines)] == []


def test_an_order_alone_comes_with_what_to_type():
    assert "--level E0,E2,E3,E4" in render(made_up(E1=ORDER))
    assert "--level" not in render(made_up(E0=LOSS, E1=ORDER))
