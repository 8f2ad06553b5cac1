"""What pages show, as plain records computed from a store."""
