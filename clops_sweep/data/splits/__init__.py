"""Patients to training, validation and test."""
