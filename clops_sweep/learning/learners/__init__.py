"""Learners, which train networks: native kernels, one module at a time, or several modules in lockstep."""
