"""Rewards for any round and arm, the loop that plays them by ask and tell, and scripts in both modes."""

import math
import os
import subprocess
import sys

from hypothesis import strategies as st

from lexbandits.environments.noise import stream

# coarse rewards make ties common
coarse = st.integers(-4, 4).map(float)
fine = st.floats(-4, 4, width=32)
tradeoffs = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def problems(draw, *, arms=(2, 6), objectives=3, levels=3, scales=(0.0, 0.5, 2.0), rounds=150):
    """K, m, a horizon and rewards for any round and arm: a level per arm, and noise."""
    K, m = draw(st.integers(*arms)), draw(st.integers(1, objectives))
    level = draw(st.lists(st.lists(st.integers(0, levels), min_size=m, max_size=m), min_size=K, max_size=K))
    scale = draw(st.sampled_from(scales))
    noise = draw(st.lists(st.lists(coarse | fine, min_size=m, max_size=m), min_size=1, max_size=40))

    def reward(t, a):
        row = noise[(t * 7 + a * 3) % len(noise)]
        return [scale * level[a][i] + row[i] for i in range(m)]

    return K, m, draw(st.integers(0, rounds)), reward


def noise_sds(data, m, choices):
    """None for the default, or one σ per objective."""
    return data.draw(st.none() | st.lists(st.sampled_from(choices), min_size=m, max_size=m))


def noisy(instance, seed, horizon, replication=0):
    """The rewards that `simulate` draws of Gaussian noise."""
    noise = stream(seed, replication).standard_normal((horizon, instance.n_objectives))
    return lambda t, a: (instance.means[a] + instance.noise_sds * noise[t]).tolist()


def drive(policy, draw, horizon):
    """Run a policy by ask and tell: the arms played, who is left, and who left how; nan is not measured."""
    played = []
    while not policy.finished and len(played) < horizon:
        arm = policy.ask()
        policy.tell(arm, [None if math.isnan(x) else x for x in draw(len(played), arm)])
        played.append(arm)
    return played, set(policy.candidates), [tuple(e) for e in policy.eliminations]


def replay(policy, played, draw):
    """A fresh policy told the same history at once."""
    again = policy.fresh()
    again.tell_many(played, [draw(t, a) for t, a in enumerate(played)])
    return again


def outputs(script, *arguments):
    """What a script prints compiled and interpreted; a warning is an error."""
    command = [sys.executable, "-W", "error", "-c", script, *arguments]
    for mode in ("1", "0"):
        environment = {**os.environ, "LEXBANDITS_JIT": mode}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        yield done.stdout
