"""Optuna searches: distributions instead of axes, and a study that decides which runs come next.

`distributions` and `definition` are plain data and import neither Optuna nor Ray; the rest is imported when a search is
looked at or run.
"""
