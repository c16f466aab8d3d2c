"""A FastAPI app that answers questions: uvicorn --app-dir examples fastapi_app:app

Needs `pip install fastapi uvicorn`. One index for the whole app: its lifespan opens and closes it, and routes
await its methods. Ask: curl 'localhost:8000/ask?q=…'; the documentation of the routes is at /docs.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Query, Request
from pydantic import BaseModel

from lightrag_jsonl import AsyncLightRAG

TEXT = "Marie Curie discovered polonium and radium. She was born in Warsaw."


class Source(BaseModel):
    """The sentence nearest to a claim of the answer."""

    document: str
    page: int
    text: str


class Reply(BaseModel):
    """An answer with the nearest sentences of its sources."""

    answer: str
    sources: list[Source]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The index is open as long as the app runs."""
    async with AsyncLightRAG("kb-web") as rag:
        await rag.insert(TEXT)  # the same text again costs nothing
        app.state.rag = rag
        yield


app = FastAPI(title="Ask", lifespan=lifespan)


@app.get("/ask")
async def ask(request: Request, question: str = Query(alias="q", min_length=1)) -> Reply:
    """The answer to a question."""
    answer = await request.app.state.rag.query(question)
    sources = [
        Source(document=citation.document, page=citation.page, text=citation.text)
        for citation in answer.citations
    ]
    return Reply(answer=answer.text, sources=sources)
