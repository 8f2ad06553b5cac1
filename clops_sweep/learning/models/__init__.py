"""Trained networks as files: what is known of them, loading, and ONNX."""
