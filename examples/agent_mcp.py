"""An agent's view of an index, by the Model Context Protocol: python examples/agent_mcp.py "QUESTION"

Needs the extra `mcp`. Starts `lightrag-jsonl mcp` as an agent's program does, lists its tools, and asks; a
real agent decides itself which tool to call. An index is made first, if there is none in `kb-agent`.
"""

import asyncio
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client

from lightrag_jsonl import LightRAG

FOLDER = Path("kb-agent")
TEXT = "Marie Curie discovered polonium and radium. She was born in Warsaw."


async def main(question: str) -> None:
    """List the tools and call two of them."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "lightrag_jsonl", "mcp", "-w", str(FOLDER)]
    )
    async with Client(stdio_client(server)) as client:
        for tool in (await client.list_tools()).tools:
            print(f"{tool.name}: {(tool.description or '').partition('.')[0]}")
        for name in ("search", "ask"):
            result = await client.call_tool(name, {"question": question})
            print(f"\n── {name}")
            print(*[content.text for content in result.content if content.type == "text"])


if not FOLDER.exists():
    with LightRAG(FOLDER) as rag:
        rag.insert(TEXT)
asyncio.run(main(" ".join(sys.argv[1:])))
