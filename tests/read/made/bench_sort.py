"""Two ways to sort, on two inputs: pytest-benchmark's JSON beside this file."""

import heapq
import random

import pytest

INPUTS = {"mixed": random.Random(0).sample(range(500), 500), "sorted": list(range(500))}
WAYS = {"builtin": sorted, "heap": lambda values: heapq.nsmallest(len(values), values)}


@pytest.mark.parametrize("data", INPUTS)
@pytest.mark.parametrize("way", WAYS)
def test_sort(benchmark, way, data):
    benchmark.group = data
    benchmark.pedantic(WAYS[way], (INPUTS[data],), rounds=5, iterations=3)


def pytest_benchmark_update_machine_info(config, machine_info):
    machine_info.clear()
