"""The same texts, fake model and fake embedder through other libraries and through this one."""
