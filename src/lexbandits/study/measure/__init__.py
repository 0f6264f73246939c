"""Measuring: functions, programs, many at a time."""
