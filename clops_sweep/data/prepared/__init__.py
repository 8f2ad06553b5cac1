"""Prepared frames: their folder, freshness, splits and normalisation."""
