"""Learners, which train a network: by native kernels, or a module."""
