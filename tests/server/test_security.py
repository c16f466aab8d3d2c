"""The threat list of docs/server.md, line by line."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl import AsyncLightRAG, ConfigError, LightRAG, LockedError, StorageError
from lightrag_jsonl.server.app import ROUTES
from lightrag_jsonl.server.rest import INDEX_PATH
from lightrag_jsonl.server.security import Access
from lightrag_jsonl.storage.rows import StoredJob
from tests.kit import store_at
from tests.server.running import PacedLLM, Running, serving, serving_model, wait_for
from tests.servers import ScriptedServer, chat_reply

TOKEN = "a-long-enough-token"
EVIL = "http://evil.example"
POSTS = [route.path for route in ROUTES if route.method == "POST"]


def filled(path: str) -> str:
    return path.replace("{index}", "kb").replace("{id}", "x")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "kb.example.org"])
def test_other_machines_need_a_token(host: str) -> None:
    """Listening beyond loopback without a token, or with one that can be guessed, is refused."""
    with pytest.raises(ConfigError, match="set a token"):
        Access(host)
    with pytest.raises(ConfigError, match="at least 16"):
        Access(host, "secret")
    assert TOKEN not in repr(Access(host, TOKEN))


@pytest.mark.slow
def test_every_route_asks_for_the_token(kb: Path) -> None:
    """Without it, or with a wrong one, nothing but health is answered."""
    with (
        serving(kb, token=TOKEN) as server,
        httpx2.Client(base_url=server.url, trust_env=False) as bare,
    ):
        wrong = [{}, {"X-API-Key": "x"}, {"Authorization": f"Basic {TOKEN}"}]
        wrong += [{"Authorization": f"Bearer {TOKEN}x"}, {"X-API-Key": ""}]
        for route in ROUTES:
            for headers in wrong:
                status = bare.request(route.method, filled(route.path), headers=headers).status_code
                public = route.path == "/health"
                assert status == (200 if public else 401), (route.path, headers)
        for path in ("/nothing", "/mcp", "/indexes/kb/", "/mcp/kb", f"/indexes?token={TOKEN}"):
            assert bare.get(path).status_code == 401
        for headers in ({"X-API-Key": TOKEN}, {"Authorization": f"bearer {TOKEN}"}):
            sent = bare.get("/indexes", headers=headers)
            assert sent.json() == ["kb"]


def test_only_allowed_host_names_are_answered(kb: Path) -> None:
    """A name that an attacker lets point to 127.0.0.1 (DNS rebinding) gets no answer; one given with
    --allow-host is one of the server's own.
    """
    with serving(kb, hosts=("kb.example.org",)) as server:
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil", "", "[", "a@b"):
            response = server.client.get("/indexes", headers={"Host": host})
            assert response.status_code in (400, 421) and "kb" not in response.text
        for host in ("kb.example.org", "KB.example.org:8080", "localhost:1", "[::1]:9"):
            assert server.client.get("/indexes", headers={"Host": host}).status_code == 200


def test_pages_of_other_origins_are_refused(server: Running) -> None:
    """A browser says where a request comes from; one of another origin changes and reads nothing."""
    for path in (*POSTS, "/indexes"):
        method = "POST" if path in POSTS else "GET"
        for origin in (
            EVIL,
            "null",
            f"{server.url}0",
            server.url.replace("127.0.0.1", "localhost"),
        ):
            headers = {"Origin": origin, "Content-Type": "application/json"}
            response = server.client.request(method, filled(path), headers=headers, content=b"{}")
            assert response.status_code == 403, (path, origin)
    assert server.get("/indexes/kb/jobs")["total"] == 0
    own = server.client.get("/indexes", headers={"Origin": server.url})
    assert own.status_code == 200


@pytest.mark.slow
def test_bodies_that_forms_can_send_are_refused(server: Running) -> None:
    """Only types that make a browser ask first are read, also without an Origin (CSRF)."""
    for path in POSTS:
        url = f"{filled(path)}?name=a.txt" if path.endswith("upload") else filled(path)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            headers = {"Content-Type": kind}
            response = server.client.post(url, content=b"{}", headers=headers)
            assert response.status_code == 415, (path, kind)
    assert server.get("/indexes/kb/jobs")["total"] == 0


def test_cors_is_off(server: Running) -> None:
    """No response lets a page of another origin read it, and what a browser asks first is refused."""
    asked = {"Origin": EVIL, "Access-Control-Request-Method": "POST"}
    first = server.client.options("/indexes/kb/query", headers=asked)
    answers = [first, server.client.get("/indexes", headers={"Origin": EVIL})]
    answers.append(server.client.get("/indexes"))
    assert first.status_code == 403
    names = {name.lower() for response in answers for name in response.headers}
    assert not any(name.startswith("access-control") for name in names)


def test_large_bodies_and_questions_are_413(kb: Path) -> None:
    """A body ends where the limit is, whether its length was announced or not; nothing stays."""
    limits = {"upload": 1_000, "body": 2_000, "question": 100}
    with serving(kb, limits=limits) as server:
        for content in (b"x" * 1_001, iter([b"x" * 600] * 3)):
            server.upload("a.txt", content, 413)
        assert server.post("/indexes/kb/query", {"question": "x" * 3_000}, 413)
        assert server.post("/indexes/kb/query", {"question": "问" * 101}, 413)
        turns = [{"role": "user", "content": "问" * 101}]
        asked = {"model": "kb", "messages": turns}
        error = server.post("/v1/chat/completions", asked, 413)["error"]
        assert error["code"] == "too_large" and server.post("/api/chat", asked, 413)["error"]
        assert server.get("/indexes/kb/jobs")["total"] == 0
        assert "pending" not in server.get("/indexes/kb")["documents"]


def test_too_many_questions_and_jobs_are_429(kb: Path) -> None:
    """Beyond the limits a client is asked to come again, and one that has left counts no more."""
    llm = PacedLLM()
    with serving_model(kb, llm, limits={"questions": 1, "jobs": 0}) as server:
        ask = {"question": "Who was Marie Curie?", "mode": "naive"}
        with server.client.stream("POST", "/indexes/kb/stream", json=ask):
            for path in ("query", "retrieve", "stream"):
                response = server.client.post(f"/indexes/kb/{path}", json=ask)
                assert response.status_code == 429 and int(response.headers["retry-after"]) > 0
            turns = [{"role": "user", "content": "Who?"}]
            server.post("/v1/chat/completions", {"model": "kb", "messages": turns}, 429)
        wait_for(lambda: server.client.post("/indexes/kb/retrieve", json=ask).status_code == 200)
        response = server.client.post("/indexes/kb/retry", json={})
        assert response.status_code == 429 and int(response.headers["retry-after"]) > 0


@pytest.mark.slow
def test_names_of_uploads_are_no_paths(server: Running, kb: Path) -> None:
    """A name with a folder or a control character is refused. Whatever a name and an id are, no file
    is written but the index.
    """
    for name in ("../x.txt", "/etc/x.txt", "a\\b.txt", "a\nb", "a\0b", "", "x" * 256):
        server.upload(name, b"Ada met Bob.", 400)
    assert server.get("/indexes/kb/jobs")["total"] == 0
    before = set(kb.parent.rglob("*"))
    job = server.upload("..", b"Ada met Bob in Rome.", id="../../evil", title="/etc/passwd")
    assert server.job(job)["state"] == "done"
    written = set(kb.parent.rglob("*"))
    assert written <= {*before, *kb.glob("index.sqlite*"), kb / "writer.lock"}
    found = server.get("/indexes/kb/documents", q="../../evil")["items"]
    assert [one["title"] for one in found] == ["/etc/passwd"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "record", ['{"id": "x", "kind": "run", "created_at": 1}', "{}", "[1]", '"任务 １２ 😀"']
)
def test_prepared_jobs_are_not_done(kb: Path, record: str) -> None:
    """What an index of somebody else holds as a job, and is none, fails in words; other jobs are done."""
    row = StoredJob(id="x", state="waiting", size=0, record=record)
    with contextlib.closing(store_at(kb)) as store, store.transaction() as rows:
        rows.put_job(row)
    with serving(kb) as server:
        assert server.job(server.upload("a.txt", b"Ada met Bob."))["state"] == "done"
        prepared = server.get("/indexes/kb/jobs/x")
    assert prepared["state"] == "failed" and "send it again" in prepared["error"]


@pytest.mark.parametrize("name", ["server.lock", "writer.lock", "index.sqlite-wal"])
def test_folder_with_links_is_not_served(kb: Path, name: str) -> None:
    """A link in an index's folder, through which the server would write elsewhere, is an error."""
    outside = kb.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious", encoding="utf-8")
    link = kb / name
    link.unlink(missing_ok=True)
    link.symlink_to(outside / "file")
    with pytest.raises(StorageError, match="is a symbolic link"), serving(kb):
        pass
    assert [path.read_text(encoding="utf-8") for path in outside.iterdir()] == ["precious"]


def test_static_files_end_at_their_folder(kb: Path, tmp_path: Path) -> None:
    """No path leads out of the folder of the page."""
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("page", encoding="utf-8")
    (tmp_path / "app.py").write_text("secret", encoding="utf-8")
    paths = ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/static/../../app.py", "//etc/passwd")
    with serving(kb, static=tmp_path / "static") as server:
        for path in paths:
            response = server.client.get(path)
            assert response.status_code in (404, 405) and "secret" not in response.text, path


def test_requests_choose_no_endpoint_and_no_key(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address or a key in a request is refused or ignored; nothing is sent there."""
    with ScriptedServer(respond=lambda request: chat_reply("evil")) as other, serving(kb) as server:
        stolen = {"base_url": other.base_url, "api_key": "k", "llm": "m"}
        for name in ("query", "retrieve", "stream"):
            server.post(f"/indexes/kb/{name}", {"question": "Curie", **stolen}, 400)
        turns = [{"role": "user", "content": "Marie Curie"}]
        server.post("/v1/chat/completions", {"model": "kb", "messages": turns, **stolen})
        server.post("/api/chat", {"model": "kb", "messages": turns, "stream": False, **stolen})
        assert other.requests == []


def test_errors_show_no_traceback_and_no_folder(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours is a 500 in JSON; errors that name the folder show only the index's name."""

    async def broken(self: AsyncLightRAG) -> Any:
        raise RuntimeError("the secret of the inside")

    with serving(kb) as server:
        monkeypatch.setattr(AsyncLightRAG, "status", broken)
        response = server.client.get("/indexes/kb")
        assert response.status_code == 500 and response.json()["error"]["code"] == "internal"
        assert "secret" not in response.text and "Traceback" not in response.text
        (kb / "index.sqlite").write_bytes(b"no database" * 1_000)
        for ending in ("-wal", "-shm"):
            (kb / f"index.sqlite{ending}").unlink(missing_ok=True)
        error = server.client.post("/indexes/kb/retrieve", json={"question": "Curie"})
        assert str(kb) not in error.text and error.status_code in (200, 500)


def test_broken_json_is_400(server: Running) -> None:
    """No body of bytes makes the server fail."""
    headers = {"Content-Type": "application/json; charset=utf-8"}
    values = b'{"question": "\\ud800"}', b'{"question": NaN}', b'"x"'
    for content in (b"{", b"\xff\xfe", b"[" * 100_000, *values, b""):
        response = server.client.post("/indexes/kb/query", content=content, headers=headers)
        assert response.status_code == 400, content[:20]
        if b"ud800" in content:
            assert "ends within a character" in response.json()["error"]["message"]


def test_every_response_forbids_what_it_does_not_need(server: Running) -> None:
    """Answers are never scripts or frames, are not guessed at, and stay in no cache."""
    for path in ("/indexes", "/nothing", "/metrics"):
        headers = server.client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_names_of_indexes_are_distinct_and_one_server_has_each(kb: Path, tmp_path: Path) -> None:
    """Two folders of one name, and a second server for a folder, are refused."""
    (tmp_path / "other").mkdir()
    twin = tmp_path / "other" / "kb"
    twin.symlink_to(kb)
    with pytest.raises(ConfigError, match="same name"), serving(kb, twin):
        pass
    with serving(kb), pytest.raises(LockedError, match="another server"), serving(kb):
        pass


def test_token_is_in_no_message(kb: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a log nor an answer repeats what was sent as a token."""
    caplog.set_level("DEBUG")
    with serving(kb, token=TOKEN) as server:
        shown = [server.client.get(path).text for path in ("/indexes", "/metrics", "/nothing")]
    assert TOKEN not in caplog.text + "".join(shown)


@pytest.mark.slow
def test_requests_that_read_a_whole_index_are_limited(kb: Path) -> None:
    """Beyond the limit a client is asked to come again; twenty at once leave the server answering."""
    paths = [route.path for route in ROUTES if route.weight]
    assert f"{INDEX_PATH}/diff" in paths and f"{INDEX_PATH}/homonyms" in paths
    with LightRAG(kb) as rag:
        rag.admin.snapshot("before")
    with serving(kb, limits={"heavy": 1}) as server:
        refused = server.client.get("/indexes/kb/diff", params={"before": "before"})
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
        assert server.get("/indexes/kb/conflicts") == []
    with serving(kb) as server, ThreadPoolExecutor(20) as clients:

        def difference(number: int) -> int:
            asked = {"before": "before"}
            return server.client.get("/indexes/kb/diff", params=asked).status_code

        assert {200} <= set(clients.map(difference, range(20))) <= {200, 429}
        assert server.client.get("/health").status_code == 200
        assert server.indexes.heavy_in_flight == 0
