"""Measures other libraries and this one with the same texts, fake model and fake embedder."""
