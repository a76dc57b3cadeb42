"""Charts for tests, and a chart repository on loopback that serves them as they are."""

import base64
import functools
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
data:
  greeting: {{ .Values.greeting | quote }}
"""


def chart_files(
    name: str = "web", version: str = "1.2.3", *, prefix: str = "", more: str = ""
) -> dict[str, str]:
    """Return the files of a small chart."""
    return {
        f"{prefix}Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n{more}",
        f"{prefix}values.yaml": "greeting: hello\n",
        f"{prefix}templates/settings.yaml": CONFIG_MAP,
    }


def pack_files(files: Mapping[str, str], name: str) -> bytes:
    """Return the files of a chart as a package, as `helm package` writes it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size = len(content.encode())
            tar.addfile(info, io.BytesIO(content.encode()))
    return data.getvalue()


@dataclass
class ChartRepository:
    """A chart repository over HTTP."""

    folder: Path
    url: str = ""
    entries: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def add(self, name: str, version: str, *, digest: str = "", more: str = "") -> bytes:
        """Add a version of a chart; return its package."""
        package = pack_files(chart_files(name, version, more=more), name)
        file = f"{name}-{version}.tgz"
        (self.folder / file).write_bytes(package)
        entry: dict[str, object] = {
            "apiVersion": "v2",
            "name": name,
            "version": version,
            "urls": [file],
            "digest": digest or hashlib.sha256(package).hexdigest(),
        }
        self.entries.setdefault(name, []).append(entry)
        self._write()
        return package

    def _write(self) -> None:
        lines = ["apiVersion: v1", "entries:"]
        for name, entries in self.entries.items():
            lines.append(f"  {name}:")
            for entry in entries:
                lines += [
                    f"  {'-' if not number else ' '} {key}: {json.dumps(value)}"
                    for number, (key, value) in enumerate(entry.items())
                ]
        (self.folder / "index.yaml").write_text("\n".join(lines) + "\n")


@contextmanager
def serve_charts(folder: Path, password: str = "") -> Iterator[ChartRepository]:
    """Run a chart repository; with a password, its files are for the user `vendor`."""
    folder.mkdir(parents=True, exist_ok=True)

    class Handler(http.server.SimpleHTTPRequestHandler):
        wanted: ClassVar = base64.b64encode(f"vendor:{password}".encode()).decode()

        def do_GET(self) -> None:
            if password and self.headers.get("Authorization") != f"Basic {self.wanted}":
                self.send_error(401)
                return
            super().do_GET()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield ChartRepository(folder, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
