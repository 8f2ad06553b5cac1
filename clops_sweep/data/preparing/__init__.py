"""From recordings to a prepared folder of frames."""
