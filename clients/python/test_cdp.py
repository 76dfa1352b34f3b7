"""Tests of the WebSocket in cdp.py against a server that sends what Chrome's side seldom does: python3 -m unittest"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
import unittest
from typing import Any, Callable, Dict, Tuple, cast

from cdp import CDP, CDPError, HandshakeError, Page, WebSocket, WebSocketClosed

BIG = 20 << 20  # bytes


class Peer:
    """The server's side of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.reader = connection, connection.makefile("rb")

    def accept(self, answer: str = "") -> None:
        headers = {}
        while line := self.reader.readline().decode().strip():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.connection.sendall((answer or "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode())

    def send(self, first: int, payload: bytes) -> None:
        n = len(payload)
        head = bytes([n]) if n < 126 else struct.pack("!BH", 126, n) if n < 1 << 16 else struct.pack("!BQ", 127, n)
        self.connection.sendall(bytes([first]) + head + payload)

    def receive(self) -> Tuple[int, bytes]:
        first, second = self.reader.read(2)
        assert second & 0x80, "a client must mask"
        n = second & 0x7F
        if n >= 126:
            n = int.from_bytes(self.reader.read(2 if n == 126 else 8), "big")
        mask = self.reader.read(4)
        return first, unmasked(self.reader.read(n), mask)


def unmasked(payload: bytes, mask: bytes) -> bytes:
    out = bytearray(payload)
    for i in range(4):
        out[i::4] = out[i::4].translate(bytes(b ^ mask[i] for b in range(256)))
    return bytes(out)


class WithPeer(unittest.TestCase):
    def serve(self, peer: Callable[[Peer], Any]) -> str:
        """Runs the function for one connection. Returns its address. The test fails if the function does."""
        listener = socket.create_server(("127.0.0.1", 0))
        failures = []

        def run() -> None:
            try:
                with listener, listener.accept()[0] as connection:
                    connection.settimeout(10)
                    peer(Peer(connection))
            except BaseException as e:  # reported below
                failures.append(e)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def check() -> None:
            thread.join(15)
            self.assertEqual(failures, [])
            self.assertFalse(thread.is_alive())

        self.addCleanup(check)
        return "ws://127.0.0.1:%d/cdp?ticket=t" % listener.getsockname()[1]


class TestWebSocket(WithPeer):
    def test_fragments_pings_and_close(self) -> None:
        def peer(p: Peer) -> None:
            p.accept()
            p.send(0x01, "gr\u00fc".encode()[:3])  # a character is split between two fragments
            p.send(0x89, b"are you there")
            self.assertEqual(p.receive(), (0x8A, b"are you there"))
            p.send(0x00, "gr\u00fc".encode()[3:])
            p.send(0x8A, b"")
            p.send(0x80, "\u00df dich".encode())
            p.send(0x81, b"")
            p.send(0x88, struct.pack("!H", 4001) + b"session_ended")
            self.assertEqual(p.receive(), (0x88, struct.pack("!H", 4001)))

        ws = WebSocket(self.serve(peer))
        self.assertEqual(ws.receive(), "gr\u00fc\u00df dich")
        self.assertEqual(ws.receive(), "")
        with self.assertRaises(WebSocketClosed) as caught:
            ws.receive()
        self.assertEqual((caught.exception.code, caught.exception.reason), (4001, "session_ended"))
        with self.assertRaises(WebSocketClosed):
            ws.send("too late")
        ws.close()

    def test_messages_of_all_lengths(self) -> None:
        lengths = [0, 1, 125, 126, 65535, 65536, BIG]

        def peer(p: Peer) -> None:
            p.accept()
            for _ in lengths:
                first, payload = p.receive()
                self.assertEqual(first, 0x81)
                p.send(0x81, payload)
            self.assertEqual(p.receive(), (0x88, struct.pack("!H", 1000)))
            p.send(0x81, b"sent before the close was seen")
            p.send(0x88, struct.pack("!H", 1000))

        ws = WebSocket(self.serve(peer))
        for n in lengths:
            text = ("0123456789abcdef" * (n // 16 + 1))[:n]
            ws.send(text)
            self.assertTrue(ws.receive() == text, n)
        ws.close()
        ws.close()

    def test_violations(self) -> None:
        for name, code, frames in [
            ("a masked frame", 1002, [(0x81, b"\x80")]),
            ("reserved bits", 1002, [(0xC1, b"")]),
            ("a continuation of nothing", 1002, [(0x80, b"")]),
            ("a message within a message", 1002, [(0x01, b"a"), (0x81, b"b")]),
            ("a fragmented ping", 1002, [(0x09, b"")]),
            ("an unknown opcode", 1002, [(0x83, b"")]),
            ("binary", 1003, [(0x82, b"a")]),
            ("not UTF-8", 1007, [(0x81, b"\xff")]),
            ("too long", 1009, [(0x01, b"a" * 600), (0x80, b"a" * 600)]),
        ]:
            with self.subTest(name):
                def peer(p: Peer) -> None:
                    p.accept()
                    for first, payload in frames:
                        if payload == b"\x80":
                            p.connection.sendall(bytes([first, 0x80, 0, 0, 0, 0]))
                        else:
                            p.send(first, payload)
                    self.assertEqual(p.receive(), (0x88, struct.pack("!H", code)))

                ws = WebSocket(self.serve(peer), max_message=1000)
                with self.assertRaises(WebSocketClosed) as caught:
                    ws.receive()
                self.assertEqual(caught.exception.code, code)
                self.doCleanups()

    def test_refused_and_false_handshakes(self) -> None:
        refusal = '{"code":"unauthorized","message":"the ticket is used up","request_id":"1"}'
        for answer, status in [
            (f"HTTP/1.1 401 Unauthorized\r\nContent-Length: {len(refusal)}\r\n\r\n{refusal}", 401),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n", 101),
            ("SSH-2.0-OpenSSH\r\n", 0),
        ]:
            with self.assertRaises(HandshakeError) as caught:
                WebSocket(self.serve(lambda p, answer=answer: p.accept(answer)))
            self.assertEqual(caught.exception.status, status)
        with self.assertRaises(ValueError):
            WebSocket("http://127.0.0.1/")

    def test_a_connection_that_breaks(self) -> None:
        ws = WebSocket(self.serve(lambda p: (p.accept(), p.send(0x01, b"half"))))
        with self.assertRaises(WebSocketClosed) as caught:
            ws.receive()
        self.assertEqual(caught.exception.code, 1006)


class TestCDP(WithPeer):
    def test_answers_out_of_order_events_and_the_end(self) -> None:
        def peer(p: Peer) -> None:
            p.accept()
            calls = {}
            for _ in range(2):
                message = json.loads(p.receive()[1])
                calls[message["method"]] = message["id"]
            p.send(0x81, json.dumps({"method": "A.event", "params": {"n": 1}, "sessionId": "other"}).encode())
            p.send(0x81, json.dumps({"method": "A.event", "params": {"n": 2}, "sessionId": "s"}).encode())
            p.send(0x81, json.dumps({"id": calls["A.fails"], "error": {"code": -32000, "message": "no"}}).encode())
            p.send(0x81, json.dumps({"id": calls["A.works"], "result": {"yes": True}}).encode())
            self.assertEqual(json.loads(p.receive()[1])["method"], "A.unanswered")
            p.send(0x88, struct.pack("!H", 4001) + b"session_ended")
            p.receive()

        chrome = CDP(self.serve(peer), timeout=10)
        results = {}
        with chrome.events("A.event", session_id="s") as following:
            worker = threading.Thread(target=lambda: results.update(chrome.call("A.works", session_id="s")))
            worker.start()
            with self.assertRaises(CDPError) as refused:
                chrome.call("A.fails")
            worker.join()
            self.assertEqual((results, refused.exception.code), ({"yes": True}, -32000))
            self.assertEqual(following(1)["params"], {"n": 2})
            with self.assertRaises(TimeoutError):
                following(0.01)
            for broken in (lambda: chrome.call("A.unanswered"), lambda: following(5), lambda: chrome.call("A.late")):
                with self.assertRaises(WebSocketClosed) as caught:
                    broken()
                self.assertEqual(caught.exception.code, 4001)
        chrome.close()

    def test_a_call_without_an_answer(self) -> None:
        def peer(p: Peer) -> None:
            p.accept()
            p.receive()
            self.assertEqual(p.receive()[0], 0x88)
            p.send(0x88, struct.pack("!H", 1000))

        with CDP(self.serve(peer)) as chrome, self.assertRaises(TimeoutError):
            chrome.call("A.unanswered", timeout=0.05)


class Answers:
    """A browser that answers every evaluation in the same way."""

    def __init__(self, answer: Dict[str, Any]) -> None:
        self.answer = answer

    def call(self, method: str, *_: Any, **__: Any) -> Dict[str, Any]:
        return self.answer if method == "Runtime.evaluate" else {}


class TestPage(unittest.TestCase):
    def test_what_was_waited_for_in_vain(self) -> None:
        false = {"result": {"value": False}}
        thrown = {"exceptionDetails": {"text": "Uncaught", "exception": {"description": "ReferenceError: foo is not defined\n    at 1"}}}
        for answer, wait, message in [
            (false, lambda p: p.click("#nope", timeout=0), "no element matches #nope, or it is not shown, after 0 seconds"),
            (false, lambda p: p.fill("#nope", "x", timeout=0), "no element matches #nope after 0 seconds"),
            (false, lambda p: p.wait_for("1 > 2", timeout=0), "1 > 2: is not true after 0 seconds"),
            (thrown, lambda p: p.wait_for("foo.bar", timeout=0),
             "foo.bar: is not true after 0 seconds; the last error: ReferenceError: foo is not defined"),
        ]:
            with self.assertRaises(TimeoutError) as caught:
                wait(Page(cast(CDP, Answers(answer)), "target", "session"))
            self.assertEqual(str(caught.exception), message)


if __name__ == "__main__":
    unittest.main()
