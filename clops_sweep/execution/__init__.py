"""Who computes: Ray, Tune, workers, the live display."""
