"""Moves the working directories of LightRAG and nano-graphrag into an index, without a model."""
