"""Which arms may be the answer if means are true, in floats: for estimates, where nothing is judged by it."""

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Vector
from lexbandits.policies.tolerance.state import FLOOR, OF, OFFERED, REACH, SIGN, TARGET, TOLERANCE, State

ROUNDED = 1e-9  # of what may be given up


def acceptable_arms(state: State, means: Vector) -> NDArray[np.bool_]:
    """Return (K,) the arms that may be the answer if `means` (K, m), larger is better, are true.

    `Tolerances` in simulation/promise.py says it exactly. Who is not offered is not acceptable.
    """
    offered = state.masks[OFFERED]
    return np.array([offered[x] and _is_acceptable(state, means, x) for x in range(offered.size)])


def _is_acceptable(state: State, means: Vector, x: int) -> bool:
    reached = state.masks[OFFERED].copy()
    for i in state.order.tolist():
        limits, values = state.limits[i], means[:, i]
        if state.is_limit[i]:
            if state.options.stops and not (reached & (values >= limits[FLOOR])).any():
                return True
            values = np.minimum(values, limits[TARGET])
        behind, whole = values[reached].max() - values, 1.0
        if limits[SIGN] != 0.0:
            whole = abs(values[reached].max() if limits[OF] < 0 else values[int(limits[OF])])
        tie, reach = limits[TOLERANCE] * whole, limits[REACH] * whole
        if behind[x] > reach * (1.0 + ROUNDED):
            return False
        reached &= behind <= (behind[x] if state.is_limit[i] else tie) + ROUNDED * reach
        reached[x] = True
    return True
