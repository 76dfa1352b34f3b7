"""Client of the HTTP API of Stasis: one file, Python 3.9 or newer, no other packages.

Copy this file into your project. openapi.yaml describes every call and field; docs/python.md has examples.

    from stasis import Stasis

    stasis = Stasis()                                             # from STASIS_URL and STASIS_API_KEY
    with stasis.session(user="ada", save="filesystem") as s:      # starts from ada's default, if there is one
        drive(s.cdp_url)                                          # with any CDP client, such as cdp.py
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
import uuid
from typing import Any, BinaryIO, Dict, Generator, Iterator, List, Mapping, Optional, TypedDict, Union
from urllib.parse import quote, urlencode

__all__ = ["Stasis", "Session", "StasisError"]

#: What a call sends: the bytes themselves, or the path of a file.
Source = Union[bytes, str, "os.PathLike[str]"]

# Words of the HTTP API in messages, each with those of this client.
_WORDS = (
    ("repeat the call with default_conflict=overwrite", "call end again with overwrite=True"),
    ("save_snapshot_mode=filesystem", 'save="filesystem"'),
    ("with save_snapshot_mode", "with save"),
    ("save_as_default=true", "as_default=True"),
    ("if_missing=fresh", 'if_missing="fresh"'),
)

_LONGEST_WAIT = 30.0  # seconds; a server that asks for more is not asked again


# Answers: the fields that a caller needs. openapi.yaml has all of them.

class _Snapshot(TypedDict):
    id: str
    session_id: str
    user_id: str
    mode: str
    created_at: str
    size_bytes: int
    logins: List[Dict[str, Any]]
    components: List[Dict[str, Any]]
    warnings: List[str]


class Snapshot(_Snapshot, total=False):
    """A saved environment."""

    label: str


class _Default(TypedDict):
    user_id: str
    version: int
    snapshot_id: Optional[str]
    session_id: Optional[str]
    moved_at: str


class Default(_Default, total=False):
    """The current version of a user's default environment."""

    last_check: Optional[LoginOutcome]


class PastDefault(_Default):
    """A version in the history of a default."""

    available: bool


class LoginOutcome(TypedDict):
    """The result of a login check."""

    logged_in: bool
    error: Optional[str]
    url: Optional[str]
    conditions: List[Dict[str, Any]]


class _DefaultOutcome(TypedDict):
    moved: bool
    version: int


class DefaultOutcome(_DefaultOutcome, total=False):
    """What became of the default when it was to move."""

    reason: str
    login_check: LoginOutcome


class Ended(TypedDict):
    """The answer to the end of a session."""

    deleted: bool
    message: str
    snapshot: Optional[Snapshot]
    default: Optional[DefaultOutcome]
    unsaved_changes: bool


class Imported(TypedDict):
    """The answer to an import."""

    snapshot: Snapshot
    default: Optional[DefaultOutcome]


class Checkpointed(Imported):
    """The answer to a checkpoint."""

    success: bool
    message: str
    unchanged: bool
    paused_ms: float


class File(TypedDict):
    """A file of a session."""

    name: str
    size_bytes: int


class _Link(TypedDict):
    link_id: str
    control: bool
    expires_at: str


class NewLink(_Link):
    """The answer that made a shared link of a session's live view. No other answer has its address."""

    url: str


class Link(_Link):
    """A shared link of a session's live view."""

    viewers: int


class StasisError(Exception):
    """An error that the daemon answered.

    `code` is one of the closed list ErrorCode in openapi.yaml; programs use it. `message` is for people. `status` is
    the HTTP status, and `request_id` finds the request in the daemon's log. `answer` is the whole answer: of a
    `version_conflict` at an end, it has the snapshot that was saved. If something else answered, such as a proxy,
    `code` is empty. A daemon that cannot be reached is an OSError instead.

    `message` names the parameters of this client where `answer` has those of the HTTP API.
    """

    def __init__(self, status: int, answer: Mapping[str, Any], reason: str = "") -> None:
        self.status = status
        self.answer = dict(answer)
        self.code = str(answer.get("code") or "")
        self.message = str(answer.get("message") or reason)
        for theirs, ours in _WORDS:
            self.message = self.message.replace(theirs, ours)
        self.request_id = str(answer.get("request_id") or "")
        super().__init__(f"{self.code or status}: {self.message}")


class Session:
    """One session. `info` is the daemon's last answer about it, as in the schema Session.

    `saved` is the answer to `end`, and so has the snapshot after a `with stasis.session(…)`.
    """

    def __init__(self, client: Stasis, info: Dict[str, Any]) -> None:
        self._client = client
        self.info = info
        self.saved: Optional[Ended] = None

    def __repr__(self) -> str:
        return f"<Session {self.id} {self.info.get('status')}>"

    @property
    def id(self) -> str:
        return str(self.info["session_id"])

    @property
    def cdp_url(self) -> str:
        """The address for CDP clients. It contains a ticket, so it needs no key. An ended session has none."""
        return str(self._live("cdp_url"))

    @property
    def agent_url(self) -> str:
        """The live view with control, for a person. It is a secret of the session, as `cdp_url` is."""
        return str(self._live("agent_url"))

    @property
    def restored(self) -> Optional[Dict[str, Any]]:
        """The restore report, or None for a fresh session."""
        return self.info.get("restored")

    def refresh(self) -> Session:
        """Asks for the session's current description."""
        self.info = self._call("GET", "")
        return self

    def end(self, save: str = "none", *, as_default: bool = False, overwrite: bool = False) -> Ended:
        """Ends the session. `save` is none, filesystem or memory.

        `as_default` makes the snapshot the default of the session's user. If that has moved since the session started
        from it, the session ends saved, and the error is `version_conflict`. End it again with `overwrite` to move
        the default all the same.
        """
        _check_save(save)
        query: Dict[str, Any] = {"save_snapshot_mode": save}
        if as_default:
            query.update(save_as_default=True, default_conflict="overwrite" if overwrite else "keep")
        answer: Ended = self._call("DELETE", "", query)
        self.saved = answer
        self.info.update(status="completed", cdp_url=None, vnc_url=None, agent_url=None)
        return answer

    def checkpoint(self, *, label: Optional[str] = None, as_default: bool = False,
                   overwrite: bool = False) -> Checkpointed:
        """Saves the session while it continues. With `success: false`, the default was kept; `message` says why."""
        body = {"label": label, "save_as_default": as_default, "default_conflict": "overwrite" if overwrite else "keep"}
        return self._call("POST", "/snapshots", body=body, once=True)

    def resume(self, snapshot_id: Optional[str] = None) -> Session:
        """Resumes the paused or ended session, under its ID and with a new `cdp_url`.

        It continues from its newest snapshot or, with `snapshot_id`, from an older one.
        """
        self._call("POST", "/resume", body={"snapshot_id": snapshot_id})
        return self.refresh()

    def pause(self) -> None:
        """Freezes the session's Chrome. It runs while a client or a viewer is attached."""
        self._call("POST", "/pause")

    def navigate(self, url: str) -> str:
        """Navigates the tab in front and returns its current URL."""
        return str(self._call("POST", "/navigate", body={"url": url})["current_url"])

    def screenshot(self) -> bytes:
        """A JPEG picture of the tab in front."""
        return base64.b64decode(self._call("GET", "/screenshot")["screenshot"].partition(",")[2])

    def snapshots(self) -> Iterator[Snapshot]:
        """The session's snapshots, newest first."""
        return self._client._pages(f"/v1/sessions/{_part(self.id)}/snapshots", "snapshots", {})

    def files(self) -> List[File]:
        """Complete downloads of the session's pages, and uploads for them."""
        return self._call("GET", "/files")["files"]

    def upload(self, source: Source, name: Optional[str] = None) -> File:
        """Gives the session a file. Bytes need a name; a file on disk has its own."""
        if name is None:
            if isinstance(source, bytes):
                raise ValueError("name: is missing; bytes need a name")
            name = os.path.basename(os.fspath(source))
        return self._call("POST", "/files", {"name": name}, source=source)

    def download(self, name: str) -> bytes:
        """The bytes of a file. `name` may be the GUID of a download."""
        with self._client._open("GET", f"/v1/sessions/{_part(self.id)}/files/{_part(name)}") as answer:
            return _read(answer)

    def delete_file(self, name: str) -> None:
        """Deletes a file of the session."""
        self._call("DELETE", f"/files/{_part(name)}")

    def link(self, *, control: bool = False, expires_in_seconds: int = 3600) -> NewLink:
        """A link that opens the live view for somebody else: to watch, or with `control` also to give input."""
        return self._call("POST", "/links", body={"control": control, "expires_in_seconds": expires_in_seconds})

    def links(self) -> List[Link]:
        """The session's shared links that have not ended."""
        return self._call("GET", "/links")["links"]

    def revoke_link(self, link_id: str) -> None:
        """Ends a shared link and disconnects its viewers."""
        self._call("DELETE", f"/links/{_part(link_id)}")

    def _call(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, **more: Any) -> Any:
        return self._client._call(method, f"/v1/sessions/{_part(self.id)}{path}", query, **more)

    def _live(self, name: str) -> Any:
        if not self.info.get(name):
            raise ValueError(f"{name}: session {self.id} is {self.info.get('status')} and has none; resume it first")
        return self.info[name]


class Stasis:
    """A daemon, and the key that calls it.

    Calls that may be repeated are repeated up to `retries` times if the daemon is busy (429, 503) or the connection is
    lost. `timeout` is in seconds, for each wait for bytes of an answer. `tls` is for a private certificate authority.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 300,
                 retries: int = 2, tls: Optional[ssl.SSLContext] = None) -> None:
        self.url = (url or os.environ.get("STASIS_URL") or "http://127.0.0.1:8080").rstrip("/")
        self._key = key or os.environ.get("STASIS_API_KEY") or ""
        if not self._key:
            raise ValueError("key: is missing; give one, or set STASIS_API_KEY")
        self.timeout = timeout
        self.retries = retries
        self._opener = urllib.request.build_opener(_NoRedirects(), urllib.request.HTTPSHandler(context=tls))

    # Sessions

    def create(self, **fields: Any) -> Session:
        """Creates a session. `fields` are those of CreateSession, such as `engine`, `viewport` or `labels`."""
        wait = float(fields.get("wait_seconds") or 0)
        return Session(self, self._call("POST", "/v1/sessions", body=fields, once=True, timeout=self.timeout + wait))

    @contextlib.contextmanager
    def session(self, user: Optional[str] = None, save: str = "none", as_default: bool = True,
                **fields: Any) -> Generator[Session, None, None]:
        """A session that ends with the block.

        With `user`, it starts from that user's default, or fresh if there is none. With `save`, its end saves it and,
        unless `as_default` is false, makes it the user's default. If the block raises, nothing is saved. A session
        that the block has ended stays ended.
        """
        _check_save(save)
        if user is not None:
            fields.setdefault("user_id", user)
            fields.setdefault("restore_default_environment_from_user_id", user)
            fields.setdefault("if_missing", "fresh")
        s = self.create(**fields)
        try:
            yield s
        except BaseException:
            with contextlib.suppress(StasisError, OSError):  # the block's own error counts
                s.end()
            raise
        if s.info.get("cdp_url"):
            s.end(save, as_default=as_default and save != "none")

    def get(self, session_id: str) -> Session:
        """A session, running or ended."""
        return Session(self, self._call("GET", f"/v1/sessions/{_part(session_id)}"))

    def sessions(self, *, status: Optional[str] = None, user: Optional[str] = None) -> Iterator[Session]:
        """All sessions that the key may see, newest first."""
        query: Dict[str, Any] = {"status": status, "user_id": user, "limit": 100}
        while True:
            with self._open("GET", "/v1/sessions", query) as answer:
                page, query["start_after"] = json.loads(_read(answer)), answer.headers.get("X-Next-Token")
            yield from (Session(self, info) for info in page)
            if not query["start_after"]:
                return

    # Users

    def user(self, user: str) -> Dict[str, Any]:
        """A user's settings."""
        return self._call("GET", f"/v1/users/{_part(user)}")

    def update_user(self, user: str, **settings: Any) -> Dict[str, Any]:
        """Changes settings, such as `login_check={"url": …, "text": …}` or `engine`. None removes one."""
        return self._call("PATCH", f"/v1/users/{_part(user)}", body=settings)

    def default(self, user: str) -> Default:
        """A user's default environment. Without one, the error is `default_not_found`."""
        return self._call("GET", f"/v1/users/{_part(user)}/default")

    def set_default(self, user: str, snapshot_id: str, if_version: Optional[int] = None) -> Default:
        """Makes a snapshot the default; with `if_version` only if that version is current, or `version_conflict`."""
        body = {"snapshot_id": snapshot_id, "if_version": if_version}
        return self._call("PUT", f"/v1/users/{_part(user)}/default", body=body, repeat=if_version is None)

    def remove_default(self, user: str) -> None:
        """Removes the default. Its history and snapshots stay."""
        self._call("DELETE", f"/v1/users/{_part(user)}/default")

    def default_history(self, user: str) -> Iterator[PastDefault]:
        """The versions of the default, newest first."""
        return self._pages(f"/v1/users/{_part(user)}/default/history", "history", {})

    def rollback(self, user: str, version: Optional[int] = None) -> Default:
        """Makes an earlier version the default again.

        Without `version`, that is the newest one that is available and has another snapshot than the current one.
        """
        current = self.default(user)
        for past in self.default_history(user):
            wanted = past["version"] == version if version else past["version"] < current["version"]
            snapshot = past["snapshot_id"]
            if wanted and snapshot and past["available"] and (version or snapshot != current["snapshot_id"]):
                return self.set_default(user, snapshot, current["version"])
        missing = f"version {version}" if version else "earlier version"
        raise LookupError(f"version: the default of {user!r} has no {missing} that is available")

    def check_login(self, user: str) -> LoginOutcome:
        """Opens the user's default and its `login_check`. Whether the site is logged in is in `logged_in`."""
        return self._call("POST", f"/v1/users/{_part(user)}/default/check")

    # Snapshots

    def snapshots(self, user: Optional[str] = None) -> Iterator[Snapshot]:
        """The snapshots of a user, or of all that the key may act for, newest first."""
        return self._pages("/v1/snapshots", "snapshots", {"user_id": user})

    def snapshot(self, snapshot_id: str) -> Snapshot:
        """A snapshot, and when its logins are expected to end."""
        return self._call("GET", f"/v1/snapshots/{_part(snapshot_id)}")

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Deletes a snapshot that no default names."""
        self._call("DELETE", f"/v1/snapshots/{_part(snapshot_id)}")

    def verify(self, snapshot_id: str) -> Dict[str, Any]:
        """Reads a snapshot to its end. Damage is in the answer: `ok` and `problems`."""
        return self._call("POST", f"/v1/snapshots/{_part(snapshot_id)}/verify")

    def diff(self, snapshot_id: str, other_id: str, *, values: bool = False) -> Dict[str, Any]:
        """What changed from one snapshot to another; `values` needs the right `secrets`."""
        return self._call("GET", f"/v1/snapshots/{_part(snapshot_id)}/diff/{_part(other_id)}", {"values": values})

    def state(self, snapshot_id: str, format: str = "stasis", *, indexed_db: bool = False) -> Any:
        """A snapshot's state: as JSON in the formats stasis, playwright and puppeteer, and as text in netscape."""
        query = {"format": format, "envelope": True, "indexed_db": indexed_db or None}
        return self._call("GET", f"/v1/snapshots/{_part(snapshot_id)}/state", query)["state"]

    def export(self, snapshot_id: str, path: Union[str, os.PathLike[str]], *,
               recipients: Optional[List[str]] = None) -> None:
        """Writes a snapshot's archive to a file. Without `recipients` (age public keys), anyone can read its logins."""
        part = f"{os.fspath(path)}.{uuid.uuid4().hex}.part"
        try:
            with self._open("GET", f"/v1/snapshots/{_part(snapshot_id)}/archive", {"recipient": recipients}) as answer:
                with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    _copy(answer, out)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part)
            raise

    def import_snapshot(self, source: Source, format: str, *, user: Optional[str] = None, label: Optional[str] = None,
                        as_default: bool = False, overwrite: bool = False) -> Imported:
        """Imports an environment. `format` is stasis, playwright, puppeteer, netscape or datadir."""
        query = {"format": format, "user_id": user, "label": label, "save_as_default": as_default,
                 "default_conflict": "overwrite" if overwrite else "keep"}
        return self._call("POST", "/v1/snapshots", query, source=source, once=True)

    # Requests

    def _call(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, **more: Any) -> Any:
        """Makes a call and decodes its JSON answer; None if there is none."""
        with self._open(method, path, query, **more) as answer:
            return json.loads(_read(answer) or b"null")

    def _pages(self, path: str, name: str, query: Dict[str, Any]) -> Iterator[Any]:
        """The items of all pages of a list."""
        while True:
            page = self._call("GET", path, {**query, "limit": 100})
            yield from page[name]
            query["start_after"] = page["next_token"]
            if not query["start_after"]:
                return

    def _open(self, method: str, path: str, query: Optional[Mapping[str, Any]] = None, *, body: Any = None,
              source: Optional[Source] = None, once: bool = False, repeat: bool = True,
              timeout: Optional[float] = None) -> http.client.HTTPResponse:
        """Makes a call and returns its answer, of which nothing is read yet.

        `once`: the call takes an Idempotency-Key, which makes a POST repeatable. `repeat`: the others may be repeated.
        """
        headers = {"Authorization": "Bearer " + self._key}
        if body is not None:
            source = json.dumps(body).encode()
        if source is not None:
            headers["Content-Type"] = "application/octet-stream" if body is None else "application/json"
        if once:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        params = [(k, str(v).lower() if isinstance(v, bool) else v) for k, v in (query or {}).items() if v is not None]
        url = self.url + path + ("?" + urlencode(params, doseq=True) if params else "")
        repeatable = once or repeat and method != "POST"
        attempt = 0
        while True:
            wait = 0.5 * 2**attempt
            attempt += 1
            try:
                with contextlib.ExitStack() as stack:
                    data: Union[bytes, BinaryIO, None]
                    if source is None or isinstance(source, bytes):
                        data = source
                    else:
                        data = stack.enter_context(open(source, "rb"))
                        headers["Content-Length"] = str(os.fstat(data.fileno()).st_size)
                    request = urllib.request.Request(url, data, headers, method=method)
                    return self._opener.open(request, timeout=timeout or self.timeout)
            except urllib.error.HTTPError as e:
                raw = b""
                with e, contextlib.suppress(OSError, http.client.HTTPException):
                    raw = e.read()
                error = StasisError(e.code, _object(raw), str(e.reason))
                with contextlib.suppress(ValueError):
                    wait = float(e.headers.get("Retry-After") or wait)
                unsure = error.code == "node_unavailable" and not repeatable  # another node may have carried it out
                if unsure or e.code not in (429, 503) or attempt > self.retries or wait > _LONGEST_WAIT:
                    raise error from None
            except (http.client.HTTPException, ConnectionError, urllib.error.URLError) as e:
                final = isinstance(getattr(e, "reason", None), (socket.timeout, ssl.SSLError))
                if final or not repeatable or attempt > self.retries:
                    raise e if isinstance(e, OSError) else ConnectionError(f"{method} {path}: {e!r}") from None
            time.sleep(wait)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The API has no redirects. Following one could send the key elsewhere."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


def _check_save(save: str) -> None:
    """Refuses an unknown mode before a session runs that could not be saved with it."""
    if save not in ("none", "filesystem", "memory"):
        raise ValueError(f"save: is {save!r}; must be none, filesystem or memory")


def _part(name: str) -> str:
    """One part of a path."""
    return quote(name, safe="")


def _object(raw: bytes) -> Dict[str, Any]:
    """The JSON object of an error; empty if it is something else."""
    with contextlib.suppress(ValueError):
        answer = json.loads(raw)
        if isinstance(answer, dict):
            return answer
    return {}


def _read(answer: http.client.HTTPResponse) -> bytes:
    """The whole body of an answer."""
    out = io.BytesIO()
    _copy(answer, out)
    return out.getvalue()


def _copy(answer: http.client.HTTPResponse, out: BinaryIO) -> None:
    """Copies an answer to its end, or raises ConnectionError if it ends early."""
    size, length = 0, answer.headers.get("Content-Length")
    try:
        while piece := answer.read(1 << 20):
            size += out.write(piece)
    except http.client.HTTPException as e:
        raise ConnectionError(f"the answer ended early, after {size} bytes") from e
    if length is not None and size != int(length):
        raise ConnectionError(f"the answer ended early, after {size} of {length} bytes")
