"""Optuna searches: distributions instead of axes, and a study that suggests the next runs."""
