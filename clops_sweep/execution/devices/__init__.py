"""The choice between CPU and GPU for a launch."""
