"""LightRAG with JSONL extraction."""
