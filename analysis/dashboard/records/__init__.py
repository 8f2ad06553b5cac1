"""Records that pages show, computed from a store."""
