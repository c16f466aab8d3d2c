"""Index with a local model by Ollama, and ask: python examples/ollama.py

First: ollama pull qwen3:8b && ollama pull bge-m3. `OPENAI_BASE_URL` names another server.
"""

import os

from lightrag_jsonl import IndexOptions, LightRAG, OpenAIEmbedder, OpenAILLM

SERVER = os.environ.get("OPENAI_BASE_URL", "http://localhost:11434/v1")
TEXT = "Marie Curie discovered polonium and radium. She was born in Warsaw and worked in Paris."

llm = OpenAILLM("qwen3:8b", base_url=SERVER, timeout=600)
embedder = OpenAIEmbedder("bge-m3", base_url=SERVER, dim=1024)
# A local server answers few calls at a time.
with LightRAG(
    "kb-ollama", llm=llm, embedder=embedder, options=IndexOptions(max_concurrent_calls=2)
) as rag:
    report = rag.insert(TEXT)
    print(f"{report.usage.calls} calls, {report.usage.input_tokens} tokens in")
    for failure in report.failures:
        print("failed:", failure.reason)
    for piece in rag.stream("What did Marie Curie discover?"):
        print(piece, end="", flush=True)
    print()
