"""Arms kept sorted by values of which one changes at a time: no round sorts anything."""

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel


@kernel
def resettle(order: Counts, values: Vector, column: int, arm: int) -> None:
    """Move `arm`, whose value has changed, to its place in `order`: largest value first, then index."""
    at = 0
    while order[at] != arm:
        at += 1
    value = values[arm, column]
    moving = True  # rather than `break`, which keeps compiled code from leaving out reference counts
    while moving and at > 0:
        above = order[at - 1]
        moving = values[above, column] < value or (values[above, column] == value and above > arm)
        if moving:
            order[at], order[at - 1] = above, arm
            at -= 1
    moving = True
    while moving and at < order.size - 1:
        below = order[at + 1]
        moving = values[below, column] > value or (values[below, column] == value and below < arm)
        if moving:
            order[at], order[at + 1] = below, arm
            at += 1
