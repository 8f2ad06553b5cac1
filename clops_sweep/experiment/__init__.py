"""What is asked for: configs and their identity, search spaces, searches, registries of plug-ins."""
