"""Downloads of public files, with the proxy and CA settings of a link."""

from pathlib import Path

from exclave.client.exchange import ask, download
from exclave.client.transport import Link, build_tls, open_client


async def download_file(link: Link, name: str, target: Path, *, most: int, within_s: float) -> None:
    """Download a file below the link's URL to a local file; follows redirects."""
    client = open_client(link, build_tls(link), connections=1)
    client.follow_redirects = True
    async with client:
        request = client.build_request("GET", f"/{name}")
        await download(link, client, request, target, within_s=within_s, most=most)


async def download_text(link: Link, name: str, *, within_s: float) -> str:
    """Return a small text file below the link's URL."""
    client = open_client(link, build_tls(link), connections=1)
    client.follow_redirects = True
    async with client:
        response = await ask(link, client, client.build_request("GET", f"/{name}"), within_s)
    return response.text
