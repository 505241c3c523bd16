import pytest
from scipy import stats

from headrace.doctor.statistics.student import t_quantile


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.95, 0.975, 0.995, 0.9999])
@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 6, 7, 11, 12, 30, 99, 400])
def test_quantiles_are_those_of_scipy(probability, degrees):
    assert t_quantile(probability, degrees) == pytest.approx(stats.t.ppf(probability, degrees), rel=1e-9)


@pytest.mark.parametrize(("probability", "degrees"), [(0.5, 3), (1.0, 3), (0.2, 3), (0.9, 0)])
def test_what_has_no_upper_quantile_is_refused(probability, degrees):
    with pytest.raises(ValueError, match=r"^no t quantile for probability"):
        t_quantile(probability, degrees)
