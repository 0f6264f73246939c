"""What is behind a study, for tests that look there: the only place that knows its private name."""


def journal_of(study):
    return study._journal


def replay_of(study):
    """What all of its journal amounts to now."""
    return journal_of(study).replay()


def storage_of(study):
    return journal_of(study).storage
