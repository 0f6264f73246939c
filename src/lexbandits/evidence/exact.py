"""No noise: the first value of an arm is its mean, and its interval is that point."""


def check_exact(arm: int, objective: int, known: float, value: float) -> None:
    """Refuse a second value that differs from the first."""
    if value != known:
        raise ValueError(
            f'arm {arm} gave {value} on objective {objective} after {known}, but the noise there is "exact": '
            "every value of an arm must be the same"
        )
