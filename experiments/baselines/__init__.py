"""Policies to compare with that search the alternatives of the lower bound."""

from experiments.baselines.top_two import TopTwo as TopTwo
from experiments.baselines.track_and_stop import TrackAndStop as TrackAndStop
