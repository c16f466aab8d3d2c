"""Measurements; each module prints one JSON object."""
