"""The batch API of a provider: a file of requests is submitted once, waited for, and answered as files."""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from lightrag_jsonl.core.aio import Result
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.files import write_whole
from lightrag_jsonl.core.retrying import with_retries
from lightrag_jsonl.providers.connection import ServerConnection
from lightrag_jsonl.providers.server_failures import message_of

ENDPOINT: Final = "/v1/chat/completions"
LABEL = "lightrag-jsonl"  # of the digest of the requests, in the metadata of a batch
MOST_BATCHES = 1_000  # batches that are looked through for an earlier one with the same requests
BATCH_RETRIES = 5  # of a request after a passing error: nobody waits at the screen
RUNNING = frozenset({"validating", "in_progress", "finalizing", "cancelling"})

log = logging.getLogger(__name__)


class ProviderBatch(Struct, frozen=True):
    """A batch at a provider: the state in the provider's word, and how many requests are done."""

    id: str
    state: str
    answered: int = 0
    failed: int = 0
    total: int = 0
    error: str = ""
    result_files: tuple[str, ...] = ()  # the provider's ids

    @property
    def is_running(self) -> bool:
        """Whether waiting is worthwhile."""
        return self.state in RUNNING

    @property
    def is_of_use(self) -> bool:
        """Whether the results may be used in place of a new batch with the same requests."""
        return self.is_running or (self.state == "completed" and self.answered > 0)


class OpenAIBatches:
    """Batches in the form of OpenAI, Azure, DashScope and others. Raises `LLMError`."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def submit(self, file: Path) -> ProviderBatch:
        """The batch of a file of requests: new, or an earlier batch of equal requests.

        So a process killed after the submission pays nothing twice.
        """
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        earlier = await self._find(digest)
        if earlier is not None:
            return earlier
        client = self._connection.client()
        uploaded = await self._asked(lambda: client.files.create(file=file, purpose="batch"))
        created = await self._asked(
            lambda: client.batches.create(
                input_file_id=uploaded.id,
                endpoint=ENDPOINT,
                completion_window="24h",
                metadata={LABEL: digest},
            ),
            retries=0,  # a lost response may hide a batch
        )
        return _read_batch(created)

    async def state(self, batch_id: str) -> ProviderBatch:
        """The present state of a batch."""
        batches = self._connection.client().batches
        return _read_batch(await self._asked(lambda: batches.retrieve(batch_id)))

    async def download(self, file_id: str, target: Path) -> None:
        """Write a file of results."""
        files = self._connection.client().files
        content = await self._asked(lambda: files.content(file_id))
        write_whole(target, content.content)

    async def _find(self, digest: str) -> ProviderBatch | None:
        """The newest useful batch of equal requests; None from a provider without lists."""
        listed = 0
        try:
            with self._connection.failures():
                async for batch in self._connection.client().batches.list(limit=100):
                    listed += 1
                    if (batch.metadata or {}).get(LABEL) == digest:
                        earlier = _read_batch(batch)
                        if earlier.is_of_use:
                            return earlier
                    if listed == MOST_BATCHES:
                        break
        except LLMError as error:
            if error.transient or not error.permanent:
                raise
            log.warning("%s: earlier batches cannot be listed, and are not looked for", error)
        return None

    async def _asked(
        self, request: Callable[[], Awaitable[Result]], *, retries: int = BATCH_RETRIES
    ) -> Result:
        async def attempt() -> Result:
            with self._connection.failures():
                return await request()

        return await with_retries(attempt, retries=retries)


def _read_batch(batch: Any) -> ProviderBatch:
    """A batch from the SDK's object."""
    counts = batch.request_counts
    errors = getattr(batch.errors, "data", None) or []
    files = (batch.output_file_id, batch.error_file_id)
    return ProviderBatch(
        id=batch.id,
        state=batch.status,
        answered=counts.completed if counts else 0,
        failed=counts.failed if counts else 0,
        total=counts.total if counts else 0,
        error="; ".join(message_of(error.to_dict()) for error in errors[:3]),
        result_files=tuple(filter(None, files)),
    )
