"""Benchmarks; each one prints one JSON object."""
