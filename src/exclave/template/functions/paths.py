"""sprig: paths and URLs as strings; no file or host is accessed."""

from exclave.template.functions.signature import Param, Registry
from exclave.template.problems import Fault
from exclave.template.urls import Url, format_url, host_name, parse_url
from exclave.template.values import Value, type_of

PATHS = Registry()
TEXT, MAP = Param.TEXT, Param.MAP


@PATHS.add("base", "osBase", takes=(TEXT,))
def base(path: str) -> str:
    """Return the last element of a path."""
    if not path:
        return "."
    stripped = path.rstrip("/")
    return stripped.rpartition("/")[2] if stripped else "/"


@PATHS.add("dir", "osDir", takes=(TEXT,))
def directory(path: str) -> str:
    """Return all but the last element of a path."""
    return clean(path[: path.rfind("/") + 1])


@PATHS.add("clean", "osClean", takes=(TEXT,))
def clean(path: str) -> str:
    """Return the shortest equivalent path."""
    rooted = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            kept.append(part)
        elif kept and kept[-1] != "..":
            kept.pop()
        elif not rooted:
            kept.append(part)
    return ("/" if rooted else "") + "/".join(kept) or "."


@PATHS.add("ext", "osExt", takes=(TEXT,))
def extension(path: str) -> str:
    """Return the extension of a path, with its dot."""
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""


@PATHS.add("isAbs", "osIsAbs", takes=(TEXT,))
def is_absolute(path: str) -> bool:
    """Return whether a path is absolute."""
    return path.startswith("/")


@PATHS.add("urlParse", takes=(TEXT,))
def url_parse(text: str) -> dict[str, Value]:
    """Return the parts of a URL as a map."""
    url = parse_url(text)
    return {
        "scheme": url.scheme,
        "host": url.host,
        "hostname": host_name(url.host),
        "path": url.path,
        "query": url.query,
        "opaque": url.opaque,
        "fragment": url.fragment,
        "userinfo": url.user,
    }


@PATHS.add("urlJoin", takes=(MAP,))
def url_join(parts: dict[str, Value]) -> str:
    """Return the URL built from a map of its parts."""

    def part(name: str) -> str:
        value = parts.get(name, "")
        if not isinstance(value, str):
            raise Fault(f"urlJoin needs a string as {name}, not {type_of(value)}")
        return value

    user = parse_url(f"proto://{part('userinfo')}@host").user if part("userinfo") else ""
    url = Url(
        scheme=part("scheme"),
        opaque=part("opaque"),
        user=user,
        host=part("host"),
        path=part("path"),
        query=part("query"),
        fragment=part("fragment"),
    )
    return format_url(url)
