"""Tests of stasis.py against a server that fails in ways the daemon seldom does: python3 -m unittest"""

from __future__ import annotations

import http.server
import os
import socket
import tempfile
import threading
import unittest
from typing import Any, Callable, Dict, List
from unittest import mock

from stasis import Session, Stasis, StasisError

Handler = http.server.BaseHTTPRequestHandler
UNSURE = b'{"code":"node_unavailable","message":"node b has not answered, and may have carried out the call"}'
ERROR = b'{"code":"shutting_down","message":"the daemon stops","request_id":"r1"}'


class TestStasis(unittest.TestCase):
    def serve(self, *answers: Callable[[Handler], Any], **options: Any) -> Stasis:
        """A client of a server that gives these answers in turn. self.requests has what it received."""
        self.requests: List[Dict[str, Any]] = []
        test, left = self, list(answers)

        class OneByOne(Handler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                test.requests.append({"method": self.command, "path": self.path, "body": body, "headers": self.headers})
                left.pop(0)(self)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer

            def log_message(self, format: str, *_: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OneByOne)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), server.server_close(), thread.join(), self.assertEqual(left, [])))
        return Stasis(f"http://127.0.0.1:{server.server_port}/", "secret", **options)

    def test_a_busy_daemon_is_asked_again(self) -> None:
        stasis = self.serve(says(503, ERROR, ("Retry-After", "0")), lost, says(201, b'{"session_id":"a","cdp_url":"ws://x"}'))
        with mock.patch("time.sleep"):
            self.assertEqual(stasis.create(labels={"a": "b"}).cdp_url, "ws://x")
        keys = {r["headers"]["Idempotency-Key"] for r in self.requests}
        self.assertEqual((len(self.requests), len(keys)), (3, 1))
        self.assertEqual({r["body"] for r in self.requests}, {b'{"labels": {"a": "b"}}'})
        self.assertEqual(self.requests[0]["headers"]["Authorization"], "Bearer secret")

    def test_what_another_node_may_have_done_is_repeated_if_that_does_no_harm(self) -> None:
        stasis = self.serve(says(503, UNSURE, ("Retry-After", "0")), says(201, b'{"session_id":"a","cdp_url":"ws://x"}'),
                            says(503, UNSURE, ("Retry-After", "0")), says(200, b"{}"))
        with mock.patch("time.sleep"):
            stasis.create()
            stasis.get("a")

    def test_what_is_not_repeated(self) -> None:
        s = Session(self.serve(lost), {"session_id": "a"})
        with self.assertRaises(OSError):
            s.link()
        with self.assertRaises(OSError):
            self.serve(lost).set_default("ada", "snap", if_version=3)
        with self.assertRaises(StasisError):  # another node may have opened the page
            Session(self.serve(says(503, UNSURE)), {"session_id": "a"}).navigate("https://a.example/once")
        with self.assertRaises(StasisError):
            self.serve(says(500, b'{"code":"save_failed"}')).get("a")
        with self.assertRaises(StasisError):
            self.serve(says(429, b'{"code":"too_many_attempts"}', ("Retry-After", "600"))).get("a")
        with self.assertRaises(StasisError) as caught:
            self.serve(says(503, ERROR), retries=0).get("a")
        e = caught.exception
        self.assertEqual((e.status, e.code, e.message, e.request_id), (503, "shutting_down", "the daemon stops", "r1"))
        self.assertEqual(str(e), "shutting_down: the daemon stops")

    def test_answers_of_others(self) -> None:
        for answer in says(502, b"<h1>Bad gateway"), says(502, b"[1]"):
            with self.assertRaises(StasisError) as caught:
                self.serve(answer).get("a")
            self.assertEqual((caught.exception.code, caught.exception.message), ("", "Bad Gateway"))
        with self.assertRaises(StasisError) as caught:  # a redirect is not followed, because it could take the key elsewhere
            self.serve(says(302, b"", ("Location", "http://127.0.0.1:1/"))).get("a")
        self.assertEqual(caught.exception.status, 302)

    def test_an_answer_that_ends_early(self) -> None:
        for headers in ([("Content-Length", "10")], [("Transfer-Encoding", "chunked")]):
            with tempfile.TemporaryDirectory() as d, self.subTest(headers):
                def half(h: Handler, headers: Any = headers) -> None:
                    start(h, 200, headers)
                    h.wfile.write(b"3\r\n123\r\n")

                with self.assertRaises(ConnectionError):
                    self.serve(half).export("snap", os.path.join(d, "out"))
                self.assertEqual(os.listdir(d), [])
                with self.assertRaises(ConnectionError):
                    Session(self.serve(half), {"session_id": "a"}).download("f")

    def test_paths_queries_and_files(self) -> None:
        ok = says(200, b"{}")
        pages = says(200, b'{"snapshots":[1],"next_token":"t"}'), says(200, b'{"snapshots":[2],"next_token":null}')
        stasis = self.serve(ok, ok, ok, *pages)
        stasis.user("a/b?c")
        stasis.diff("x", "y", values=True)
        with tempfile.NamedTemporaryFile(suffix=".json") as f:
            f.write(b"[]" * 100_000)
            f.flush()
            stasis.import_snapshot(f.name, "puppeteer", user="ada")
        self.assertEqual([r["path"] for r in self.requests], [
            "/v1/users/a%2Fb%3Fc", "/v1/snapshots/x/diff/y?values=true",
            "/v1/snapshots?format=puppeteer&user_id=ada&save_as_default=false&default_conflict=keep"])
        self.assertEqual(self.requests[2]["body"], b"[]" * 100_000)
        self.assertEqual(list(stasis.snapshots("ada")), [1, 2])
        self.assertIn("start_after=t", self.requests[4]["path"])

    def test_an_unknown_mode_is_refused_before_a_session_runs(self) -> None:
        stasis = self.serve()
        with self.assertRaisesRegex(ValueError, "save: is 'file'; must be none, filesystem or memory"):
            with stasis.session(save="file"):
                self.fail("the block ran")
        with self.assertRaises(ValueError):
            Session(stasis, {"session_id": "a"}).end("file")
        self.assertEqual(self.requests, [])

    def test_errors_name_what_this_client_has(self) -> None:
        conflict = says(409, b'{"code":"version_conflict","message":"kept; repeat the call with default_conflict=overwrite to move it"}')
        with self.assertRaisesRegex(StasisError, "kept; call end again with overwrite=True to move it"):
            Session(self.serve(conflict), {"session_id": "a"}).end("filesystem", as_default=True)

    def test_a_block_that_raises_saves_nothing(self) -> None:
        created = says(201, b'{"session_id":"a","cdp_url":"ws://x"}')
        stasis = self.serve(created, says(500, b"{}"))
        with self.assertRaises(KeyError), stasis.session(user="ada", save="filesystem"):
            raise KeyError("the block's own")
        self.assertEqual(self.requests[1]["path"], "/v1/sessions/a?save_snapshot_mode=none")
        stasis = self.serve(created, says(200, b"{}"))
        with stasis.session(user="ada", save="memory") as s:
            s.end("memory")  # and not a second time
        with self.assertRaises(ValueError):
            print(s.cdp_url)

    def test_settings(self) -> None:
        with mock.patch.dict(os.environ, {"STASIS_URL": "https://s.example/", "STASIS_API_KEY": "k"}):
            self.assertEqual(Stasis().url, "https://s.example")
        with mock.patch.dict(os.environ, clear=True), self.assertRaises(ValueError):
            Stasis()


def start(h: Handler, status: int, headers: Any) -> None:
    h.send_response(status)
    for name, value in headers:
        h.send_header(name, value)
    h.end_headers()


def says(status: int, body: bytes, *headers: Any) -> Callable[[Handler], None]:
    def answer(h: Handler) -> None:
        start(h, status, [*headers, ("Content-Length", str(len(body)))])
        h.wfile.write(body)

    return answer


def lost(h: Handler) -> None:
    h.connection.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    unittest.main()
