"""Studies to look at: one that ended, one under way, both played once."""

import pytest

from support import stage


@pytest.fixture(scope="session")
def ended():
    study = stage.create("ended")
    stage.play(study)
    return study


@pytest.fixture(scope="session")
def under_way():
    study = stage.create("under way", budget=4000)
    stage.play(study, 200)
    study.ask_many(2, worker="w2")
    return study
