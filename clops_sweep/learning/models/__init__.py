"""Trained networks as files: their description, loading, and ONNX."""
