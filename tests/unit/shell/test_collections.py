"""The looking for garbage, which is a step of the loop like any other."""

from broker.shell.server import COLLECTIONS


def test_collection_of_young_objects_looks_at_few_and_one_of_all_is_rare():
    new, of_the_next_age, of_all = COLLECTIONS
    assert new * (of_the_next_age + 1) <= 6_000  # 0.05 us each, and ten times as much on a busy machine
    assert new * of_the_next_age * of_all >= 25_000_000  # 100,000 groups are fewer
