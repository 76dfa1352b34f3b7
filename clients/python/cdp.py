"""A client of the Chrome DevTools Protocol: one file, Python 3.9 or newer, no other packages.

Copy this file into your project. It is for scripts that need no library such as Playwright; docs/python.md has examples.

    from cdp import CDP

    with CDP(session.cdp_url) as chrome:
        page = chrome.page()
        page.navigate("https://example.com/")
        print(page.evaluate("document.title"))
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import queue
import socket
import ssl
import struct
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple
from urllib.parse import urlsplit

__all__ = ["CDP", "Page", "CDPError", "WebSocket", "WebSocketClosed", "HandshakeError"]

_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3


class WebSocketClosed(ConnectionError):
    """The connection has ended: with the close code and reason of the other side, or 1006 without them."""

    def __init__(self, code: int, reason: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(f"the connection has ended: {code} {reason}".rstrip())


class HandshakeError(ConnectionError):
    """The server did not accept the WebSocket. `status` and `body` are its answer."""

    def __init__(self, status: int, body: str) -> None:
        self.status, self.body = status, body
        super().__init__(f"the WebSocket was refused: {status} {body}")


class WebSocket:
    """The client's side of RFC 6455, for text messages. One thread may receive while others send."""

    def __init__(self, url: str, *, timeout: float = 30, max_message: int = 256 << 20,
                 tls: Optional[ssl.SSLContext] = None) -> None:
        """Connects. `timeout` is for the handshake, `max_message` limits received messages, in bytes."""
        parts = urlsplit(url)
        if parts.scheme not in ("ws", "wss") or not parts.hostname:
            raise ValueError("url: must begin with ws:// or wss://")
        self._max, self._sending, self._receiving, self._closed = max_message, threading.Lock(), threading.Lock(), False
        secure = parts.scheme == "wss"
        self._socket = socket.create_connection((parts.hostname, parts.port or (443 if secure else 80)), timeout)
        try:
            if secure:
                context = tls or ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=parts.hostname)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            key = base64.b64encode(os.urandom(16)).decode()
            target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
            host = parts.netloc.rpartition("@")[2]
            request = [f"GET {target} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
                       f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
            self._socket.sendall("\r\n".join(request).encode("ascii"))
            self._reader = self._socket.makefile("rb")
            self._accept(key)
            self._socket.settimeout(None)
        except BaseException:
            self._socket.close()
            raise

    def _accept(self, key: str) -> None:
        """Reads the answer to the handshake."""
        line = self._reader.readline(4096).split(None, 2)
        if len(line) < 2 or not line[0].startswith(b"HTTP/1.") or not line[1].isdigit():
            raise HandshakeError(0, "the answer is not HTTP")
        headers = http.client.parse_headers(self._reader)
        if int(line[1]) != 101:
            body = self._reader.read(min(int(headers.get("Content-Length") or 0), 64 << 10))
            raise HandshakeError(int(line[1]), body.decode(errors="replace").strip())
        accept = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
        if (headers.get("Sec-WebSocket-Accept") != accept or headers.get("Upgrade", "").lower() != "websocket"
                or headers.get("Sec-WebSocket-Extensions") or headers.get("Sec-WebSocket-Protocol")):
            raise HandshakeError(101, "the answer does not fit the request")

    def send(self, text: str) -> None:
        """Sends one text message."""
        self._send(_TEXT, text.encode())

    def receive(self) -> str:
        """Waits for the next text message. Answers pings meanwhile. Raises WebSocketClosed at the end."""
        try:
            with self._receiving:
                return self._message()
        except WebSocketClosed:
            self._drop()
            raise
        except (OSError, ValueError) as e:  # ValueError: closed by another thread
            self._drop()
            raise WebSocketClosed(1006, "" if self._closed else str(e)) from None

    def _message(self) -> str:
        pieces: List[bytes] = []
        size = 0
        while True:
            final, opcode, payload = self._frame(self._max - size)
            if opcode == _PING:
                self._send(_PONG, payload)
            elif opcode == _CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
                self._end(1000 if code == 1005 else code)
                raise WebSocketClosed(code, payload[2:].decode(errors="replace"))
            elif opcode in (_TEXT, _CONTINUATION):
                if (opcode == _CONTINUATION) != bool(pieces):
                    raise self._fail(1002, "a fragment is out of order")
                pieces.append(payload)
                size += len(payload)
                if final:
                    try:
                        return b"".join(pieces).decode()
                    except UnicodeDecodeError:
                        raise self._fail(1007, "a message is not UTF-8") from None
            elif opcode != _PONG:
                raise self._fail(1003 if opcode == _BINARY else 1002, f"a frame has opcode {opcode}")

    def close(self) -> None:
        """Closes the connection. Waits some seconds for the other side. Any thread may call it, also more than once."""
        self._end(1000)
        if self._receiving.acquire(timeout=5):
            try:
                self._socket.settimeout(5)
                while self._frame(self._max)[1] != _CLOSE:
                    pass
            except (OSError, ValueError):
                pass  # closed already, or too slow
            finally:
                self._receiving.release()
        self._drop()

    def _frame(self, room: int) -> Tuple[bool, int, bytes]:
        first, second = self._exactly(2)
        final, opcode, length = bool(first & 0x80), first & 0x0F, second & 0x7F
        if first & 0x70 or second & 0x80 or (opcode >= 8 and (not final or length > 125)):
            raise self._fail(1002, "a frame is malformed")
        if length >= 126:
            length = int.from_bytes(self._exactly(2 if length == 126 else 8), "big")
        if opcode < 8 and length > room:
            raise self._fail(1009, f"a message has more than {self._max} bytes")
        return final, opcode, self._exactly(length)

    def _exactly(self, n: int) -> bytes:
        data = self._reader.read(n)
        if len(data) != n:
            raise WebSocketClosed(1006, "" if self._closed else "without a close frame")
        return data

    def _send(self, opcode: int, payload: bytes) -> None:
        n = len(payload)
        head = bytes([0x80 | opcode])
        if n < 126:
            head += bytes([0x80 | n])
        else:
            head += struct.pack("!BH", 0x80 | 126, n) if n < 1 << 16 else struct.pack("!BQ", 0x80 | 127, n)
        mask = os.urandom(4)
        stream = int.from_bytes((mask * (n // 4 + 1))[:n], "big")  # as numbers, because a loop over bytes is slow
        masked = (int.from_bytes(payload, "big") ^ stream).to_bytes(n, "big")
        with self._sending:
            if self._closed:
                raise WebSocketClosed(1006, "")
            self._closed = opcode == _CLOSE
            try:
                self._socket.sendall(head + mask + masked)
            except OSError as e:
                raise WebSocketClosed(1006, str(e)) from None

    def _fail(self, code: int, reason: str) -> WebSocketClosed:
        self._end(code)
        return WebSocketClosed(code, reason)

    def _end(self, code: int) -> None:
        """Sends a close frame, once."""
        with contextlib.suppress(WebSocketClosed):
            self._send(_CLOSE, struct.pack("!H", code))

    def _drop(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that receives
        self._reader.close()
        self._socket.close()


class CDPError(Exception):
    """Chrome or the daemon answered a command with an error."""

    def __init__(self, method: str, error: Dict[str, Any]) -> None:
        self.code = int(error.get("code") or 0)
        self.message = str(error.get("message") or "")
        super().__init__(f"{method}: {self.message}")


class CDP:
    """A connection to a session's browser. It may be used by several threads."""

    def __init__(self, url: str, *, timeout: float = 30, tls: Optional[ssl.SSLContext] = None) -> None:
        """Connects to a `cdp_url`. `timeout` is for each command, in seconds."""
        self.timeout = timeout
        self._socket = WebSocket(url, timeout=timeout, tls=tls)
        self._lock = threading.Lock()
        self._next = 0
        self._waiting: Dict[int, Future[Dict[str, Any]]] = {}
        self._listeners: List[Callable[[Dict[str, Any]], None]] = []
        self._ended: Optional[WebSocketClosed] = None
        self._thread = threading.Thread(target=self._read, name="cdp", daemon=True)
        self._thread.start()

    def __enter__(self) -> CDP:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. The session continues."""
        self._socket.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, *, session_id: Optional[str] = None,
             timeout: Optional[float] = None) -> Dict[str, Any]:
        """Sends a command and returns its result. `session_id` is that of an attached target."""
        answer: Future[Dict[str, Any]] = Future()
        with self._lock:
            if self._ended:
                raise self._ended
            self._next += 1
            number = self._next
            self._waiting[number] = answer
        message: Dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session_id:
            message["sessionId"] = session_id
        try:
            try:
                self._socket.send(json.dumps(message))
            except WebSocketClosed as e:
                raise self._ended or e from None
            result = answer.result(self.timeout if timeout is None else timeout)
        except FutureTimeoutError:
            raise TimeoutError(f"{method}: no answer") from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if "error" in result:
            raise CDPError(method, result["error"])
        return result.get("result") or {}

    @contextlib.contextmanager
    def events(self, *methods: str,
               session_id: Optional[str] = None) -> Generator[Callable[[float], Dict[str, Any]], None, None]:
        """Collects events from now on. The block gets a function that waits so many seconds for the next one."""
        received: queue.Queue[Dict[str, Any]] = queue.Queue()

        def listen(event: Dict[str, Any]) -> None:
            if event.get("method") in (*methods, None) and event.get("sessionId") in (session_id, None):
                received.put(event)

        def following(seconds: float) -> Dict[str, Any]:
            if self._ended and received.empty():
                raise self._ended
            try:
                event = received.get(timeout=max(seconds, 0))
            except queue.Empty:
                raise TimeoutError(f"{', '.join(methods)}: no such event") from None
            if "method" not in event:  # sent to all listeners at the end
                raise self._ended or WebSocketClosed(1006, "")
            return event

        with self._lock:
            self._listeners.append(listen)
        try:
            yield following
        finally:
            with self._lock:
                self._listeners.remove(listen)

    def page(self, url: str = "") -> Page:
        """Attaches to the first page whose URL begins with `url`."""
        for target in self.call("Target.getTargets")["targetInfos"]:
            if target["type"] == "page" and target["url"].startswith(url):
                return self.attach(target["targetId"])
        raise LookupError(f"url: no page begins with {url!r}")

    def new_page(self, url: str = "about:blank") -> Page:
        """Opens a tab and attaches to it."""
        return self.attach(self.call("Target.createTarget", {"url": url})["targetId"])

    def attach(self, target_id: str) -> Page:
        """Attaches to a page by its target ID, such as that of the first entry of `json/list`: the tab in front."""
        attached = self.call("Target.attachToTarget", {"targetId": target_id, "flatten": True})
        return Page(self, target_id, attached["sessionId"])

    def _read(self) -> None:
        """The thread that receives: hands answers to their calls, and events to listeners."""
        try:
            while True:
                message = json.loads(self._socket.receive())
                with self._lock:
                    answer = self._waiting.pop(message.get("id"), None)
                    listeners = () if "id" in message else tuple(self._listeners)
                if answer:
                    answer.set_result(message)
                for listen in listeners:
                    listen(message)
        except (WebSocketClosed, ValueError) as e:
            ended = e if isinstance(e, WebSocketClosed) else WebSocketClosed(1007, "a message is not JSON")
        with self._lock:
            self._ended = ended
            waiting, listeners = list(self._waiting.values()), tuple(self._listeners)
        for answer in waiting:
            answer.set_exception(ended)
        for listen in listeners:
            listen({})


class Page:
    """A page, with what a script needs most. `call` sends it any other command."""

    def __init__(self, chrome: CDP, target_id: str, session_id: str) -> None:
        self.chrome, self.target_id, self.session_id = chrome, target_id, session_id
        self.call("Page.enable")
        self.call("Page.setLifecycleEventsEnabled", {"enabled": True})

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, *,
             timeout: Optional[float] = None) -> Dict[str, Any]:
        """Sends a command to the page."""
        return self.chrome.call(method, params, session_id=self.session_id, timeout=timeout)

    def navigate(self, url: str, timeout: float = 30) -> None:
        """Opens an address and waits until it has loaded. A page that goes to another at once is followed."""
        deadline = time.monotonic() + timeout
        earlier = self.call("Page.getFrameTree")["frameTree"]["frame"]["loaderId"]
        with self.chrome.events("Page.lifecycleEvent", session_id=self.session_id) as following:
            began = self.call("Page.navigate", {"url": url}, timeout=timeout)
            if began.get("errorText"):
                raise CDPError("Page.navigate", {"message": f"{url}: {began['errorText']}"})
            while "loaderId" in began:  # absent if only the fragment differs
                event = following(deadline - time.monotonic())["params"]
                if event["name"] == "load" and event["frameId"] == began["frameId"] and event["loaderId"] != earlier:
                    return

    def evaluate(self, expression: str, timeout: Optional[float] = None) -> Any:
        """The value of a JavaScript expression, as JSON has it. Waits for a promise."""
        params = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", params, timeout=timeout)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            thrown = details.get("exception", {}).get("description") or details["text"]
            raise CDPError("Runtime.evaluate", {"message": thrown})
        return answer["result"].get("value")

    def wait_for(self, expression: str, timeout: float = 30) -> Any:
        """Waits until a JavaScript expression is true, also over navigations, and returns its value."""
        return self._wait_for(expression, f"{expression}: is not true", timeout)

    def _wait_for(self, expression: str, problem: str, timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        while True:
            thrown = ""
            try:
                value = self.evaluate(expression)
                if value:
                    return value
            except CDPError as e:  # a document that goes away, or is not complete yet
                thrown = "; the last error: " + e.message.partition("\n")[0]
            if time.monotonic() > deadline:
                raise TimeoutError(f"{problem} after {timeout:g} seconds{thrown}")
            time.sleep(0.05)

    def fill(self, selector: str, text: str, timeout: float = 30) -> None:
        """Waits for a field and replaces its text."""
        element = f"document.querySelector({json.dumps(selector)})"
        self._wait_for(element + " !== null", f"no element matches {selector}", timeout)
        self.evaluate(f"{element}.focus(), {element}.select?.(), 0")
        self.call("Input.insertText", {"text": text})

    def click(self, selector: str, timeout: float = 30) -> None:
        """Waits for an element and clicks its centre. It does not wait for a page that the click opens."""
        x, y = self._wait_for(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element?.scrollIntoView({{ block: 'center', behavior: 'instant' }});
            const box = element?.getBoundingClientRect();
            return box?.width && [box.x + box.width / 2, box.y + box.height / 2];
        }})()""", f"no element matches {selector}, or it is not shown,", timeout)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
