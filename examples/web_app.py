"""A web app of your own that answers questions: uvicorn --app-dir examples web_app:app

Needs the extra `server`. The same lines work in FastAPI: one index for the whole app, opened and closed by
its lifespan, and `await rag.query(…)` in a route. Ask: curl 'localhost:8000/ask?q=…'
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from lightrag_jsonl import AsyncLightRAG

TEXT = "Marie Curie discovered polonium and radium. She was born in Warsaw."


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """The index is open as long as the app runs."""
    async with AsyncLightRAG("kb-web") as rag:
        await rag.insert(TEXT)  # the same text again costs nothing
        app.state.rag = rag
        yield


async def ask(request: Request) -> JSONResponse:
    """The answer to ?q=…, with the sentences it comes from."""
    answer = await request.app.state.rag.query(request.query_params["q"])
    sources = [
        {"document": citation.document, "page": citation.page, "text": citation.text}
        for citation in answer.citations
    ]
    return JSONResponse({"answer": answer.text, "sources": sources})


app = Starlette(routes=[Route("/ask", ask)], lifespan=lifespan)
