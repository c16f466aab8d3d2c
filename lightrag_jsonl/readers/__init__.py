"""Readers for files of many formats; `formats` has their table, loaded at first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
