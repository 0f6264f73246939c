"""Policies against instances: one run, or thousands at the speed of the random number generator."""
