"""Downloads of the WMT14 recipes: resumed, checked, and listed without one byte being fetched."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recipes.wmt14_common import corpora, download, mirror
from recipes.wmt14_common.corpora import Archive
from recipes.wmt14_common.resumed_download import download as fetch

pytestmark = pytest.mark.unit

CONTENT = bytes(range(256)) * 4096  # 1 MiB


class Server:
    """Serves files with ranges; ``breaks`` holds after how many bytes of an answer the next connections end."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"/wmt13/a.tgz": CONTENT}
        self.breaks: list[int] = []
        self.ranges: list[str | None] = []
        self.sent = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = server.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
                asked = self.headers.get("Range")
                server.ranges.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
                fits = asked and self.headers.get("If-Range") == etag
                body = content[start:] if fits else content
                self.send_response(206 if fits else 200)
                self.send_header("ETag", etag)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                body = body[: server.breaks.pop(0)] if server.breaks else body
                # Counted first: the client may have gone on before this thread comes back from writing.
                server.sent += len(body)
                self.wfile.write(body)
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()


def test_a_broken_download_goes_on_where_it_stopped(server, tmp_path, capsys):
    server.breaks = [300_000, 200_000]
    fetch([f"{server.address}/wmt13/a.tgz"], tmp_path / "a.tgz", patience=0.01)
    assert (tmp_path / "a.tgz").read_bytes() == CONTENT
    assert server.sent == len(CONTENT)  # not one byte came twice
    assert server.ranges == [None, "bytes=300000-", "bytes=500000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]
    assert "trying again" in capsys.readouterr().out


def test_a_later_call_goes_on_too_unless_the_file_is_another_one(server, tmp_path):
    target, place = tmp_path / "a.tgz", f"{server.address}/wmt13/a.tgz"
    server.breaks = [400_000]
    with pytest.raises(SystemExit, match="what has come is kept and resumed"):
        fetch([place], target, attempts=1)
    assert not target.exists() and (tmp_path / "a.tgz.part").stat().st_size == 400_000
    server.files["/wmt13/a.tgz"] = CONTENT[::-1]
    fetch([place], target, attempts=1)
    assert target.read_bytes() == CONTENT[::-1]
    assert server.ranges[-1] == "bytes=400000-" and server.sent == 400_000 + len(CONTENT)


def test_a_mirror_may_be_flat_and_a_missing_file_is_named(server, tmp_path):
    server.files = {"/a.tgz": CONTENT}
    archive = Archive("wmt13/a.tgz", "1 MB")
    assert download.obtain(archive, server.address, tmp_path).read_bytes() == CONTENT
    with pytest.raises(SystemExit, match="b.tgz: 404"):
        download.obtain(Archive("wmt13/b.tgz", "1 MB"), server.address, tmp_path)


def test_what_is_published_must_fit(tmp_path):
    (tmp_path / "a.tgz").write_bytes(CONTENT)
    md5 = hashlib.md5(CONTENT).hexdigest()
    right = Archive("a.tgz", "1 MB", len(CONTENT), "md5", md5, "somebody")
    assert download.verified(right, tmp_path / "a.tgz", tmp_path, None)["checked"] == "md5 as somebody says"
    with pytest.raises(SystemExit, match=r"its md5 is .*, somebody says 0000"):
        download.verified(Archive("a.tgz", "", None, "md5", "0000", "somebody"), tmp_path / "a.tgz", tmp_path, None)
    with pytest.raises(SystemExit, match="1,048,576 bytes and should have 5"):
        download.verified(Archive("a.tgz", "", 5), tmp_path / "a.tgz", tmp_path, None)


def test_what_nobody_publishes_must_stay_what_it_was(tmp_path, capsys):
    path, archive = tmp_path / "a.tgz", Archive("a.tgz", "1 MB")
    path.write_bytes(CONTENT)
    first = download.verified(archive, path, tmp_path, None)
    assert first["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    capsys.readouterr()
    assert download.verified(archive, path, tmp_path, None) == first
    assert capsys.readouterr().out == ""  # its hash was not computed again
    path.write_bytes(CONTENT[::-1])
    with pytest.raises(SystemExit, match="is not what was first downloaded"):
        download.verified(archive, path, tmp_path, None)


@pytest.mark.parametrize(("language", "number"), [("de", 5), ("fr", 7)])
def test_a_dry_run_lists_addresses_and_sizes(language, number, tmp_path, capsys):
    download.main(["--target-lang", language, "--cache", str(tmp_path / "cache"), "--dry-run"])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == number + 1 and all(line.startswith("https://www.statmt.org/wmt1") for line in printed[:-1])
    assert all("bytes" in line or "about" in line for line in printed[:-1])
    assert "nothing was downloaded" in printed[-1] and not (tmp_path / "cache").exists()
    for archive in corpora.archives(language):
        assert (archive.hash_name is None) == (archive.published_by is None) == (archive.hash_value is None)


def test_the_miniature_is_taken_from_a_folder_and_over_http(server, tmp_path):
    mirror.main(["--output", str(tmp_path / "mirror"), "--pairs", "20"])
    from_folder, over_http = tmp_path / "one.json", tmp_path / "two.json"
    call = ["--target-lang", "fr", "--cache", str(tmp_path / "cache")]
    download.main([*call, "--mirror", str(tmp_path / "mirror"), "--output", str(from_folder)])
    for path in (tmp_path / "mirror").rglob("*"):
        if path.is_file():
            server.files[f"/{path.relative_to(tmp_path / 'mirror')}"] = path.read_bytes()
    download.main([*call, "--mirror", server.address, "--output", str(over_http)])
    one, two = (json.loads(path.read_text()) for path in (from_folder, over_http))
    assert one["archives"] == two["archives"] and one["note"] == two["note"] == mirror.NOTE
    assert Path(two["places"]["dev.tgz"]).parent == tmp_path / "cache" / "miniature"
    # The real archives' checksums hold everywhere else, and nothing is remembered of the miniature's.
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["miniature"]
    (tmp_path / "mirror" / download.MINIATURE).unlink()
    with pytest.raises(SystemExit, match="and should have 657,632,379"):
        download.main([*call, "--mirror", str(tmp_path / "mirror"), "--output", str(from_folder)])


def test_a_mirror_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SystemExit, match="which is no folder"):
        download.miniature_of(str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match="has neither wmt14/dev.tgz nor dev.tgz"):
        download.obtain(corpora.DEVELOPMENT, str(tmp_path), tmp_path)
