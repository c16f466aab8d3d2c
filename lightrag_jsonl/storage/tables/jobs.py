"""The jobs of a server: what clients asked for, in the order of arrival."""

from msgspec.json import decode as parse

from lightrag_jsonl.storage.rows import StoredJob
from lightrag_jsonl.storage.tables.base import (
    Tables,
    WritableTables,
    json_text,
    only_column,
    read_as,
)

COLUMNS = "name AS id, state, size, record"
OPEN = "state IN ('waiting', 'running')"
WAITS = "name IN (SELECT job FROM pending WHERE job IS NOT NULL)"  # a document of the job waits


class JobReads(Tables):
    """Reads jobs."""

    def job(self, id: str) -> StoredJob | None:
        """The job with an id, if there is one."""
        cursor = self.dialect.execute(f"SELECT {COLUMNS} FROM jobs WHERE name = ?", id)
        return next(iter(read_as(StoredJob, cursor)), None)

    def newest_jobs(self, limit: int | None = None, offset: int = 0) -> list[StoredJob]:
        """The jobs, newest first, without the first `offset` and at most `limit`."""
        statement = f"SELECT {COLUMNS} FROM jobs ORDER BY jobs.id DESC {self._page(limit, offset)}"
        return read_as(StoredJob, self.dialect.execute(statement))

    def open_jobs(self, limit: int | None = None) -> list[StoredJob]:
        """The jobs that have not ended, in the order of their turns, at most `limit`."""
        statement = f"SELECT {COLUMNS} FROM jobs WHERE {OPEN} ORDER BY jobs.id {self._page(limit)}"
        return read_as(StoredJob, self.dialect.execute(statement))

    def job_states(self) -> dict[str, int]:
        """The number of jobs in each state."""
        return dict(self.dialect.execute("SELECT state, count(*) FROM jobs GROUP BY state"))

    def job_bytes(self) -> int:
        """The bytes that were sent for the jobs that are not done, and may be needed again."""
        statement = f"SELECT coalesce(sum(size), 0) FROM jobs WHERE {OPEN} OR state = 'failed'"
        (size,) = only_column(self.dialect.execute(statement))
        return int(size)


class JobWrites(JobReads, WritableTables):
    """Writes jobs."""

    def job_to_change(self, id: str) -> StoredJob | None:
        """The job with an id, which no other process changes until the end of the transaction."""
        statement = f"SELECT {COLUMNS} FROM jobs WHERE name = ?{self.dialect.FOR_UPDATE}"
        return next(iter(read_as(StoredJob, self.dialect.execute(statement, id))), None)

    def put_job(self, job: StoredJob) -> None:
        """Store a job, behind all others if it is new."""
        row = {"name": job.id, "state": job.state, "size": job.size, "record": job.record}
        self._put("jobs", [row], key="name")

    def delete_job(self, id: str) -> None:
        """Delete a job."""
        self._delete("jobs", "name", [id])

    def delete_ended_jobs(self, count: int) -> None:
        """Delete the jobs that have ended, but for the newest `count`.

        A failed job stays as long as a document of it waits, since it can be tried again.
        """
        self.dialect.execute(
            f"DELETE FROM jobs WHERE NOT {OPEN} AND NOT (state = 'failed' AND {WAITS}) AND id NOT IN ("
            f"SELECT id FROM jobs WHERE NOT {OPEN} ORDER BY id DESC {self._page(count)})"
        )

    def purge_jobs(self) -> None:
        """Delete the jobs that have ended, and the reports of failed ones with documents that wait."""
        self.delete_ended_jobs(0)
        statement = f"SELECT {COLUMNS} FROM jobs WHERE state = 'failed'"
        for job in read_as(StoredJob, self.dialect.execute(statement)):
            record = json_text({**parse(job.record), "report": {}})
            self.dialect.execute("UPDATE jobs SET record = ? WHERE name = ?", record, job.id)
