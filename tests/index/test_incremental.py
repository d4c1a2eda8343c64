"""Incremental equals fresh: some hundred steps of what `make fuzz` does for thousands."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watches are inotify's")


@pytest.mark.slow
def test_whatever_happens_the_index_equals_one_built_from_nothing() -> None:
    from .machine import Workspace

    few = settings(
        max_examples=12,
        stateful_step_count=25,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # `make fuzz` makes a failure small
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Workspace, settings=few)
