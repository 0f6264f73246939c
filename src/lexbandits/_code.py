"""The base of every enum of codes: what a program compares and a person reads is one string."""

from enum import StrEnum


class Code(StrEnum):
    """A string of a fixed set. It shows as the string that it is, in tuples, dicts and notebooks too.

    >>> class Colour(Code):
    ...     RED = "red"
    >>> Colour.RED, Colour("red") == "red"
    ('red', True)
    """

    def __repr__(self) -> str:
        return repr(self.value)
