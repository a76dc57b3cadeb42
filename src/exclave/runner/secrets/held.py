"""All secrets that this runner holds, to be masked whether or not a job names them."""

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from exclave.base.json_values import Json
from exclave.base.logs import Log
from exclave.base.secrets import Secret
from exclave.runner.logs.masking import mask_text
from exclave.runner.logs.pattern_index import Needles, NeedleSet
from exclave.runner.logs.secret_spellings import find_key_needles, find_needles

_log = Log("runner.secrets")

_MOST_BYTES = 16 << 20
_FORMER = 8
"""How many earlier contents of a file stay masked, because jobs may have read them."""
_TOKENS = 64
"""How many tokens stay masked; each is valid for minutes."""

Reader = Callable[[bytes], Iterable[bytes]]
"""Return the patterns of the secrets in a file."""
Signature = tuple[int, int, int, int]


@dataclass(slots=True)
class HeldFile:
    """A file with secrets; it is read again whenever it has changed."""

    path: Path
    read: Reader
    _seen: Signature | None = None
    _contents: deque[frozenset[bytes]] = field(default_factory=lambda: deque(maxlen=_FORMER))

    @property
    def needles(self) -> frozenset[bytes]:
        """The patterns of the current and recent contents."""
        return frozenset().union(*self._contents)

    def refresh(self) -> bool:
        """Read the file if it has changed; return whether it has."""
        signature = _look_at(self.path)
        if signature == self._seen:
            return False
        try:
            with self.path.open("rb") as opened:
                self._contents.append(frozenset(self.read(opened.read(_MOST_BYTES))))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            _log.warning("secrets_not_masked", file=str(self.path), error=type(error).__name__)
        self._seen = signature
        return True


class HeldSecrets:
    """Collects the patterns of all secrets of one runner. Thread-safe."""

    def __init__(self, files: Iterable[HeldFile] = (), values: Iterable[str] = ()) -> None:
        self._files = list(files)
        self._values = find_needles(values)
        self._tokens: deque[frozenset[bytes]] = deque(maxlen=_TOKENS)
        self._lock = threading.Lock()
        self._needles = Needles(self._values)

    def find(self) -> NeedleSet:
        """Return all patterns; the same object while nothing has changed."""
        with self._lock:
            changed = [file.refresh() for file in self._files]
            if any(changed):
                self._arrange()
            return self._needles

    def note_token(self, token: Secret) -> None:
        """Mask a token of the control plane or of a registry from now on."""
        with self._lock:
            self._tokens.append(find_needles([token.reveal()]))
            self._arrange()

    def mask(self, text: str) -> str:
        """Return a text with secrets masked."""
        return mask_text(self.find(), text)

    def _arrange(self) -> None:
        parts = [self._values, *self._tokens, *(file.needles for file in self._files)]
        self._needles = Needles(frozenset().union(*parts))


def read_secrets(data: bytes) -> Iterable[bytes]:
    """Return the patterns of every string in a secrets file."""
    try:
        return find_needles(_list_texts(json.loads(data)))
    except (ValueError, RecursionError):
        # Perhaps edited by hand and incomplete: mask everything in it that may be a secret.
        return find_needles(data.decode(errors="replace").split('"'))


def read_credentials(data: bytes) -> Iterable[bytes]:
    """Return the patterns of the passwords and private keys in the file of source credentials."""
    try:
        credentials = json.loads(data)["credentials"]
        texts = [
            credential.get(key) for credential in credentials for key in ("password", "private_key")
        ]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return read_secrets(data)
    return find_needles(text for text in texts if isinstance(text, str))


def read_password(data: bytes) -> Iterable[bytes]:
    """Return the patterns of a password file."""
    return find_needles([data.decode(errors="replace")])


def read_raw_key(data: bytes) -> Iterable[bytes]:
    """Return the patterns of a binary key file."""
    return find_key_needles(data)


def read_hex_keys(data: bytes) -> Iterable[bytes]:
    """Yield the patterns of a file of hexadecimal keys, one per line."""
    for word in data.decode(errors="replace").split():
        yield from find_needles([word])
        try:
            yield from find_key_needles(bytes.fromhex(word))
        except ValueError:
            continue


def read_enrolment(data: bytes) -> Iterable[bytes]:
    """Return the patterns of the one-time token in a Stack's document."""
    document = json.loads(data)
    token = document.get("enrolment") if isinstance(document, dict) else None
    return find_needles([token] if isinstance(token, str) else [])


def read_url_password(url: str | None) -> list[str]:
    """Return the password in a URL, both as written and decoded."""
    try:
        password = urlsplit(url or "").password
    except ValueError:
        password = None
    return [password, unquote(password)] if password else []


def _look_at(path: Path) -> Signature | None:
    try:
        facts = os.stat(path)  # noqa: PTH116 - called for every chunk of output
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _list_texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for part in value.values():
                yield from _list_texts(part)
        case list():
            for part in value:
                yield from _list_texts(part)
        case bool() | None:
            return
        case _:
            yield str(value)
