"""Generated ECG."""
