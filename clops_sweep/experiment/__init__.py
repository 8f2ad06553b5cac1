"""Configs and their identity, search spaces, searches, and registries of plug-ins."""
