"""Strategies, functions, networks and observers: registration, declaration and options."""
