"""A property that is computed once: as of Python 3.12, whose has no lock that all objects share.

With it who computes one of a study would hold up whoever asks for the same of any other study.
"""

import sys
from functools import cached_property as _of_functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = _of_functools
else:

    class cached_property(_of_functools):  # noqa: N801 (as there)
        """Computed by whoever asks first; by two who ask at once, twice."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
