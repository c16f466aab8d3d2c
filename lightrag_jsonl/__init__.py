"""LightRAG with JSONL extraction: texts to a knowledge graph, questions to answers with sources.

`__init__.pyi` lists the public names; each is loaded with its module at first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "0.1.0"
