"""Fixtures of the adapters' tests."""

from servers import tiny_llama

__all__ = ["tiny_llama"]
