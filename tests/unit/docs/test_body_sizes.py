"""What the docs tell about the sizes of bodies is what the server takes."""

import re

from exclave.api.requests import LIMITS
from exclave.control.registry.uploads import MAX_BLOB
from exclave.domain.manifests import MAX_MANIFEST
from tests.unit.docs.pages import ROOT

PAGE = (ROOT / "docs" / "how-to" / "run-a-control-plane.md").read_text()
_ROW = re.compile(r"^\| (Control|Runner) \| `([^`]+)` \| (\d+) (KiB|MiB|GiB) \|$", re.MULTILINE)
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_RUNNER = ("/v1/attest", "/v1/executions/", "/v1/stack/", "/v1/poll", "/v1/renew")


def read_rows() -> dict[tuple[str, str], int]:
    return {(api, path): int(size) * _UNITS[unit] for api, path, size, unit in _ROW.findall(PAGE)}


def test_the_page_lists_the_limit_of_every_route() -> None:
    wanted = {
        ("Runner" if path.startswith(_RUNNER) else "Control", path): size
        for path, size in LIMITS.items()
    }
    wanted["Runner", "/v2/…/manifests/…"] = MAX_MANIFEST
    wanted["Runner", "/v2/…/blobs/uploads/…"] = MAX_BLOB

    assert read_rows() == wanted


def test_the_proxy_of_the_page_lets_every_body_through() -> None:
    servers = re.findall(r"server_name (\w+)\..*?client_max_body_size (\d+)m;", PAGE, re.DOTALL)

    for name, size in servers:
        api = "Runner" if name == "runners" else "Control"
        largest = max(
            one for (of, path), one in read_rows().items() if of == api and "/v2/" not in path
        )
        assert int(size) << 20 == largest
    assert len(servers) == 2


def test_the_proxy_of_the_page_does_not_store_uploads_to_the_registry() -> None:
    block = re.search(r"location /v2/ \{(.*?)\}", PAGE, re.DOTALL)

    assert block is not None
    assert "client_max_body_size 0;" in block[1]
    assert "proxy_request_buffering off;" in block[1]
