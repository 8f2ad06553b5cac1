"""Splits of patients into training, validation and test."""
