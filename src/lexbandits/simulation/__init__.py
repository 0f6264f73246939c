"""Policies against instances: one run, or thousands at the speed of the random number generator.

`lexbandits.simulate` and `lexbandits.sweep` run them. What they take and give is here, written in
`__init__.pyi` and loaded on first use.
"""

from lexbandits._extras import lazy_names

__all__, __getattr__ = lazy_names(__name__, __file__)


def __dir__() -> list[str]:
    return sorted(__all__)
