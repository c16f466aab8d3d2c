"""Fixtures of the adapters' tests."""

from tests.servers import tiny_llama

__all__ = ["tiny_llama"]
