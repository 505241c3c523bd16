"""What a loader is for shows in the steps that follow its batches."""

from __future__ import annotations

from headrace.doctor.watch.timeline import Timeline

TRAIN, OTHER = 0, 1


def told(events):
    timeline = Timeline()
    for event in events:
        if event == "step":
            timeline.stepped()
        else:
            timeline.handed_over(event)
    return timeline, {loader: events.count(loader) for loader in (TRAIN, OTHER)}


def roles(events):
    timeline, counts = told(events)
    return [timeline.is_trained_on(loader, counts[loader]) for loader in (TRAIN, OTHER)]


def test_steps_follow_the_batches_of_a_training_loader():
    assert roles(([TRAIN, "step"] * 5 + [OTHER] * 7) * 3) == [True, False]


def test_gradients_may_be_collected_over_several_batches():
    assert roles([TRAIN, TRAIN, TRAIN, TRAIN, "step"] * 3 + [OTHER] * 4) == [True, False]


def test_two_loaders_under_one_zip_are_both_trained_on():
    assert roles([OTHER, TRAIN, "step"] * 5) == [True, True]


def test_a_look_at_evaluation_before_training_makes_nothing_of_it():
    assert roles([OTHER, OTHER] + [TRAIN, "step"] * 5 + [OTHER] * 5) == [True, False]
