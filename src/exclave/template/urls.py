"""URLs as Go's net/url parses and formats them, as far as templates need it."""

from dataclasses import dataclass

from exclave.template.problems import Fault
from exclave.template.text import to_bytes, to_text

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_PATH = _UNRESERVED | frozenset(b"$&+,/:;=@")
_USER = _UNRESERVED | frozenset(b"$&+,;=")
_FRAGMENT = _UNRESERVED | frozenset(b"$&+,/:;=?@!()*")
_HOST = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_SCHEME_REST = frozenset("0123456789+-.")
_HEX = frozenset("0123456789abcdefABCDEF")


def _escape(text: str, safe: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in to_bytes(text))


def escape_query(text: str) -> str:
    """Return a query component, escaped; a space becomes a plus."""
    return _escape(text, _UNRESERVED | {32}).replace(" ", "+")


def unescape(text: str) -> str:
    """Return a text with percent escapes decoded; raise if one is invalid."""
    if "%" not in text:
        return text
    pieces = text.split("%")
    data = bytearray(to_bytes(pieces[0]))
    for piece in pieces[1:]:
        pair = piece[:2]
        if len(pair) != 2 or not set(pair) <= _HEX:  # noqa: PLR2004 - two digits
            raise Fault(f"invalid URL escape %{pair}")
        data.append(int(pair, 16))
        data += to_bytes(piece[2:])
    return to_text(bytes(data))


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL."""

    scheme: str = ""
    opaque: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse_url(text: str) -> Url:
    """Return the parts of a URL."""
    if any(char < " " or char == "\x7f" for char in text):
        raise Fault("a URL has no control characters")
    rest, _, fragment = text.partition("#")
    if not rest and not text:
        return Url()
    scheme, rest = _split_scheme(rest)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, opaque=rest, query=query, fragment=unescape(fragment))
        if ":" in rest.split("/", 1)[0]:
            raise Fault("the first part of a relative URL has no colon")
    user = host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
        user, host = _split_authority(authority)
    return Url(scheme, "", user, host, unescape(rest), query, unescape(fragment))


def _split_scheme(text: str) -> tuple[str, str]:
    for number, char in enumerate(text):
        if char.isascii() and char.isalpha():
            continue
        if char in _SCHEME_REST:
            if number == 0:
                return "", text
        elif char == ":":
            if number == 0:
                raise Fault("a URL has a scheme before its colon")
            return text[:number].lower(), text[number + 1 :]
        else:
            return "", text
    return "", text


def _split_authority(text: str) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    _check_host(host)
    if not at:
        return "", unescape(host)
    name, colon, password = user.partition(":")
    shown = _escape(unescape(name), _USER)
    return shown + (colon + _escape(unescape(password), _USER)), unescape(host)


def _check_host(host: str) -> None:
    if host.startswith("["):
        port = host.rpartition("]")[2]
        if "]" not in host:
            raise Fault("a bracket of the host is not closed")
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if port and (port[0] != ":" or not all(char in "0123456789" for char in port[1:])):
        raise Fault(f"invalid port {port!r} after the host")
    if " " in host:
        raise Fault("invalid character in the host name")


def host_name(host: str) -> str:
    """Return the host without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def format_url(url: Url) -> str:
    """Return a URL as text."""
    text = f"{url.scheme}:" if url.scheme else ""
    if url.opaque:
        text += url.opaque
    else:
        text += _format_hierarchy(url)
    if url.query:
        text += f"?{url.query}"
    if url.fragment:
        text += f"#{_escape(url.fragment, _FRAGMENT)}"
    return text


def _format_hierarchy(url: Url) -> str:
    text = ""
    if url.scheme or url.host or url.user:
        rooted = bool(url.scheme) and url.path.startswith("/")
        if url.host or url.user or rooted or url.path.startswith("//"):
            text += "//"
        if url.user:
            text += f"{url.user}@"
        text += _escape(url.host, _HOST)
    path = _escape(url.path, _PATH)
    if path and not path.startswith("/") and url.host:
        text += "/"
    if not text and ":" in path.split("/", 1)[0]:
        text += "./"
    return text + path
