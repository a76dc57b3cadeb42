"""Start or stop the web server of the noticeboard; it goes on when the job that starts it ends."""

import http.server
import os
import signal
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path

FOLDER = Path(os.environ["FOLDER"])
PORT = int(os.environ["PORT"])
PID = FOLDER / f"page-{PORT}.pid"
SITE = FOLDER / f"page-{PORT}"


def start() -> None:
    """Write the page and leave a server behind, in a session and with an environment of its own."""
    SITE.mkdir(parents=True, exist_ok=True)
    (SITE / "index.html").write_text(os.environ["HTML"])
    stop()
    if os.fork() == 0:
        os.setsid()
        env = {"FOLDER": str(FOLDER), "PORT": str(PORT)}
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        script = SITE / "serve.py"
        script.write_text(Path(__file__).read_text())
        os.execve(sys.executable, [sys.executable, str(script), "serve"], env)
    wait_until_up()


def serve() -> None:
    """Answer on loopback until somebody ends us."""
    PID.write_text(str(os.getpid()))
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
    http.server.ThreadingHTTPServer(("127.0.0.1", PORT), handler).serve_forever()


def wait_until_up() -> None:
    """Return when the page answers."""
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=2).close()
        except OSError:
            time.sleep(0.05)
        else:
            print(f"the page answers at http://127.0.0.1:{PORT}/")
            return
    sys.exit(f"the page does not answer: is port {PORT} taken?")


def stop() -> None:
    """End the server that an earlier start left behind."""
    if PID.exists():
        try:
            os.kill(int(PID.read_text()), signal.SIGTERM)
        except ProcessLookupError:
            pass
        PID.unlink()


{"start": start, "serve": serve, "stop": stop}[sys.argv[1]]()
