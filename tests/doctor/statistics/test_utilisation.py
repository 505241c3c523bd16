import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.statistics.utilisation import Demand, agrees, ceiling, predicted_gains

seconds = st.floats(1e-6, 1)


@st.composite
def stages(draw):
    num = draw(st.integers(1, 5))
    found = []
    for place in range(num):
        wall_s = draw(seconds)
        found.append(
            Demand(
                stage=f"s{place}",
                wall_s=wall_s,
                cpu_s=wall_s * draw(st.floats(0, 1)),
                num_servers=draw(st.integers(1, 16)),
            )
        )
    return found


cores = st.floats(0.5, 64)


@given(stages(), cores)
def test_at_the_ceiling_something_is_fully_used_and_nothing_more_than_that(demands, num_cores):
    bound = ceiling(demands, num_cores=num_cores)
    assert bound.occupancies[bound.binding] == 1.0
    assert all(0 <= share <= 1 for share in bound.occupancies.values())
    for one in demands:
        assert bound.rate_per_s * one.wall_s <= one.num_servers * (1 + 1e-9)
    assert bound.rate_per_s * sum(one.cpu_s for one in demands) <= num_cores * (1 + 1e-9)


@given(stages(), cores, st.floats(1.1, 10))
def test_slower_machines_and_fewer_servers_never_raise_the_ceiling(demands, num_cores, times):
    rate = ceiling(demands, num_cores=num_cores).rate_per_s
    slower = [
        Demand(stage=one.stage, wall_s=one.wall_s * times, cpu_s=one.cpu_s * times, num_servers=one.num_servers)
        for one in demands
    ]
    assert ceiling(slower, num_cores=num_cores).rate_per_s == pytest.approx(rate / times)
    assert ceiling(demands, num_cores=num_cores / times).rate_per_s <= rate * (1 + 1e-9)


@given(stages(), cores)
def test_taking_a_stage_out_never_lowers_the_ceiling(demands, num_cores):
    gains = predicted_gains(demands, num_cores=num_cores)
    assert set(gains) == {one.stage for one in demands}
    assert all(gain >= -1e-9 for gain in gains.values())
    binding = ceiling(demands, num_cores=num_cores).binding
    if binding != "cores":
        assert all(abs(gain) < 1e-9 for stage, gain in gains.items() if stage != binding)


def test_a_known_pipeline():
    demands = [
        Demand(stage="read", wall_s=0.010, cpu_s=0.001, num_servers=4),
        Demand(stage="decode", wall_s=0.020, cpu_s=0.020, num_servers=4),
        Demand(stage="collate", wall_s=0.001, cpu_s=0.001, num_servers=1),
    ]
    wide = ceiling(demands, num_cores=8)
    assert (wide.binding, wide.rate_per_s) == ("decode", pytest.approx(200))
    assert wide.occupancies == pytest.approx({"read": 0.5, "decode": 1.0, "collate": 0.2, "cores": 0.55})
    assert predicted_gains(demands, num_cores=8) == pytest.approx({"read": 0.0, "decode": 1.0, "collate": 0.0})
    narrow = ceiling(demands, num_cores=2)
    assert (narrow.binding, narrow.rate_per_s) == ("cores", pytest.approx(2 / 0.022))
    gains = predicted_gains(demands, num_cores=2)
    assert gains["decode"] > gains["read"] > 0


def test_what_costs_nothing_has_no_ceiling():
    free = [Demand(stage="read", wall_s=0.0, cpu_s=0.0, num_servers=1)]
    assert ceiling(free, num_cores=2).rate_per_s == math.inf
    assert ceiling(free, num_cores=2).binding is None
    assert predicted_gains(free, num_cores=2) == {}
    alone = [Demand(stage="read", wall_s=0.1, cpu_s=0.0, num_servers=1)]
    assert predicted_gains(alone, num_cores=2) == {"read": math.inf}


def test_model_and_experiment_agree_on_the_bottleneck_or_it_is_unexplained():
    predicted = {"read": 0.0, "decode": 0.8}
    assert agrees(predicted, {"read": 0.02, "decode": 0.6})
    assert not agrees(predicted, {"read": 0.5, "decode": 0.1})
    assert not agrees({"read": 0.0, "decode": 0.0}, {"read": 0.02, "decode": 0.6})
    assert not agrees(predicted, {})
    assert not agrees(predicted, {"hand over": 0.9})


def test_names_that_mean_two_things_are_refused():
    twice = [Demand(stage="read", wall_s=1, cpu_s=0, num_servers=1)] * 2
    with pytest.raises(ValueError, match=r"^stages must have different names"):
        ceiling(twice, num_cores=1)
    with pytest.raises(ValueError, match=r"^stages must have different names, and none may be called 'cores'$"):
        ceiling([Demand(stage="cores", wall_s=1, cpu_s=0, num_servers=1)], num_cores=1)
