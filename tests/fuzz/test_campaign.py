"""Whatever people and files give, in forms that want to break it: a sentence or a result.

The short form of the campaign is here. The long one, whose log is committed, is
``python tests/fuzz/campaign.py``, or ``pytest -m slow tests/fuzz``.
"""

import pytest
from attacking import ran
from campaign import Record, campaign
from targets import TARGETS


@pytest.mark.wide
@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.short])
def test_what_is_strange_is_refused_or_works(name, tmp_path):
    target = TARGETS[name]
    found = ran(target, tmp_path, target.short, seed=0)
    assert not found.failures
    if target.both:
        assert found.counts["refused"] > 0
        assert found.counts["worked"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", TARGETS)
def test_the_long_form(name, seed):
    record = campaign(Record(name, seed), 10_000, minutes=60)
    print(record)
    assert not record.failures
