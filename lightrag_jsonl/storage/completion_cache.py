"""The cached answers of a store, for the model client."""

import asyncio
from collections.abc import Collection
from operator import methodcaller

from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.storage.store import Store, write
from lightrag_jsonl.storage.views import Transaction


class CompletionCache:
    """The cached answers of a store, for the model client."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._waiting: dict[bytes, tuple[Completion, str | None]] = {}
        self._next: asyncio.Task[None] | None = None  # stores what is waiting

    async def get(self, key: bytes) -> Completion | None:
        """The cached answer of the request with this key."""
        with self._store.view() as view:  # quicker than handing a look-up by key to a thread
            return view.completion(key)

    async def put(self, key: bytes, completion: Completion, document: str | None = None) -> None:
        """Cache an answer; answers that come during a transaction share the next transaction."""
        if self._store.read_only:
            return
        self._waiting[key] = completion, document
        if self._next is None:
            self._next = asyncio.create_task(self._put_waiting())
        await asyncio.shield(self._next)

    async def _put_waiting(self) -> None:
        async with self._lock:
            answers = self._waiting
            self._waiting = {}
            self._next = None

            def put(transaction: Transaction) -> None:
                for key, (completion, document) in sorted(answers.items()):
                    transaction.put_completion(key, completion, document)

            await write(self._store, put, durable=False)

    async def delete(self, keys: Collection[bytes]) -> None:
        """Forget answers."""
        await write(self._store, methodcaller("delete_completions", keys))
