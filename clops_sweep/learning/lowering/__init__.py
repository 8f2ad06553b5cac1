"""Lowering of modules to programs of layers for the native kernels."""
