"""Random draws as a function of a key, a round and a lane: nothing is consumed, so replay draws the same.

The generator is Philox-4x32-10 (Salmon, Moraes, Dror and Shaw 2011), a counter-based one. Its 32-bit
words are held in 64-bit integers and masked, which compiled and interpreted code do alike.
"""

import math

import numpy as np

from lexbandits._arrays import Counts
from lexbandits._jit import kernel
from lexbandits.policies.policy import Policy

WORD = 0xFFFFFFFF
UNIT = 2.0**-53


def policy_key(seed: int, run: tuple[int, ...] = ()) -> Counts:
    """(2,) the key of a policy's draws: its own seed and, in a run, the run's seed and replication."""
    return np.random.SeedSequence(seed, spawn_key=run).generate_state(2).astype(np.int64)


class Randomised(Policy):
    """A policy with a setting `seed` whose state has a field `key`."""

    def start_run(self, seed: int, replication: int) -> None:
        """Tie the draws to a simulated run."""
        self.state.key[:] = policy_key(self._settings["seed"], (seed, replication))


@kernel
def philox(key: Counts, round: int, lane: int) -> tuple[int, int, int, int]:
    """Four random 32-bit words."""
    # int() because a product of NumPy scalars warns where a compiled one wraps and a Python one grows
    key_0, key_1 = int(key[0]), int(key[1])
    a, b, c, d = int(round) & WORD, (int(round) >> 32) & WORD, int(lane) & WORD, (int(lane) >> 32) & WORD
    for _ in range(10):
        left = 0xD2511F53 * a
        right = 0xCD9E8D57 * c
        a, b, c, d = (
            ((right >> 32) & WORD) ^ b ^ key_0,
            right & WORD,
            ((left >> 32) & WORD) ^ d ^ key_1,
            left & WORD,
        )
        key_0 = (key_0 + 0x9E3779B9) & WORD
        key_1 = (key_1 + 0xBB67AE85) & WORD
    return a, b, c, d


@kernel
def uniform(key: Counts, round: int, lane: int) -> float:
    """A number in [0, 1) with 53 random bits."""
    a, b, _, _ = philox(key, round, lane)
    return ((a << 21) | (b >> 11)) * UNIT


@kernel
def normal(key: Counts, round: int, lane: int) -> float:
    """A standard normal number (Box and Muller 1958)."""
    a, b, c, d = philox(key, round, lane)
    radius = ((a << 21) | (b >> 11)) * UNIT
    angle = ((c << 21) | (d >> 11)) * UNIT
    return math.sqrt(-2.0 * math.log(1.0 - radius)) * math.cos(2.0 * math.pi * angle)
