"""Blobs in a bucket of any store that speaks the S3 API."""

import contextlib
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from exclave.base.errors import InvalidInput, Unavailable
from exclave.base.logs import Log
from exclave.base.secrets import Secret
from exclave.storage.blobs.base import (
    CHUNK,
    check_folder,
    check_key,
    is_key,
    missing_blob,
    regroup,
)

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ClientConfig, RetryConfig, S3Config

log = Log("blobs")

_PART = 16 << 20
"""A blob up to this size is one request; a bigger one goes up in parts, and appears as a whole."""

_RETRY: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}
_PAGE = 1000
_STREAM_PART = 8 << 20
"""Size of the parts of a stream: ten thousand of them, which is all S3 takes, are 80 GB."""
_STREAM_PARTS = 2


@dataclass(frozen=True, slots=True)
class S3Place:
    """Where the bucket is.

    What is left out comes from the usual `AWS_…` variables or from the role of the machine.
    """

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: Secret | None = None


class S3Blobs:
    """Blobs as objects, always addressed as `endpoint/bucket/prefix/key`."""

    def __init__(self, place: S3Place) -> None:
        self._place = place
        check_folder(place.prefix)
        # Plain HTTP is for an endpoint that somebody wrote down as such, never by accident.
        client: ClientConfig = {
            "allow_http": place.endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "timeout": timedelta(seconds=60),
        }
        try:
            self._store = S3Store(
                place.bucket,
                prefix=place.prefix or None,
                config=_configure(place),
                client_options=client,
                retry_config=_RETRY,
            )
        except (BaseError, ValueError) as error:
            raise InvalidInput(
                f"the settings of the S3 bucket are wrong: {_reason(error)}"
            ) from error

    async def put(self, key: str, data: bytes) -> None:
        """Store the bytes: all of them or none, and durably once this returns."""
        with self._telling(f"store blob `{check_key(key)}`"):
            await self._store.put_async(key, data, chunk_size=_PART)

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store what comes piece by piece; the object appears when all parts have arrived."""
        watched = _Watched(regroup(chunks, _STREAM_PART))
        with self._telling(f"store blob `{check_key(key)}`"):
            try:
                await self._store.put_async(
                    key, watched, chunk_size=_STREAM_PART, max_concurrency=_STREAM_PARTS
                )
            except Exception as error:
                # The library wraps what the source raised; the caller wants its own back.
                if watched.failure is not None:
                    raise watched.failure from error
                raise

    async def get(self, key: str) -> bytes:
        """Read a blob; a missing one is `NotFound`."""
        with self._telling(f"read blob `{check_key(key)}`"):
            try:
                result = await self._store.get_async(key)
            except FileNotFoundError as error:
                if _lacks_bucket(error):
                    raise
                raise missing_blob(key) from None
            return bytes(await result.bytes_async())

    async def read(self, key: str, start: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """Read a blob, or a part of it, piece by piece."""
        with self._telling(f"read blob `{check_key(key)}`"):
            content = await self._open(key, start, size)
            if content is None:
                return
            async for chunk in content.stream(CHUNK):
                yield bytes(chunk)

    async def _open(self, key: str, start: int, size: int | None) -> "GetResult | None":
        """Open a blob; None if there is nothing at that place of it."""
        try:
            whole = (await self._store.head_async(key))["size"]
            end = whole if size is None else min(whole, start + size)
            if start >= end:
                return None
            return await self._store.get_async(key, options={"range": (start, end)})
        except FileNotFoundError as error:
            if _lacks_bucket(error):
                raise
            raise missing_blob(key) from None

    async def delete(self, key: str) -> None:
        """Remove a blob; a missing one is fine."""
        with self._telling(f"delete blob `{check_key(key)}`"):
            try:
                await self._store.delete_async(key)
            except FileNotFoundError as error:
                if _lacks_bucket(error):
                    raise

    async def list_keys(self, folder: str = "") -> list[str]:
        """List the keys below a folder, sorted, without objects that cannot be ours."""
        keys: list[str] = []
        with self._telling(f"list the blobs of `{check_folder(folder)}/`"):
            async for page in self._store.list(folder or None, chunk_size=_PAGE):
                keys += (item["path"] for item in page)
        return sorted(key for key in keys if is_key(key))

    async def close(self) -> None:
        """Nothing to let go of: idle connections close themselves."""

    @contextlib.contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            # Keys, bucket and endpoint are for the operator, not for tenants.
            log.error(
                "blob_store_failed",
                deed=what,
                endpoint=self._place.endpoint or "S3",
                bucket=self._place.bucket,
                error=_reason(error),
                advice=_advise(error),
            )
            raise Unavailable(
                f"the blob store cannot {what.partition(' `')[0]}",
                hint="Try again later; the server's log says more to the operator.",
            ) from error


class _Watched:
    """An iterator that remembers how its source failed."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self.failure: Exception | None = None

    def __aiter__(self) -> "_Watched":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            raise
        except Exception as error:
            self.failure = error
            raise


def _configure(place: S3Place) -> "S3Config":
    # One DELETE per object: the bulk call is missing in some stores that speak S3.
    config: S3Config = {"virtual_hosted_style_request": False, "disable_bulk_delete": True}
    if place.endpoint:
        # Both, because the second may come from the environment and would win.
        config["endpoint"] = config["aws_endpoint_url_s3"] = place.endpoint
    if place.region:
        config["region"] = place.region
    if place.access_key_id and place.secret_access_key is not None:
        config["access_key_id"] = place.access_key_id
        config["secret_access_key"] = place.secret_access_key.reveal()
    return config


def _lacks_bucket(error: Exception) -> bool:
    """Distinguish a missing bucket from a missing object: both are 404, only one is an outage."""
    return "NoSuchBucket" in str(error)


def _advise(error: Exception) -> str:
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return "Check the access key and that it may read, write, list and delete in the bucket."
    if _lacks_bucket(error):
        return "Create the bucket, or correct its name in the settings."
    return "Check the endpoint and the network; the same request may succeed later."


def _reason(error: Exception) -> str:
    """Shorten what the library says: the store's own code and sentence where there is one."""
    match = re.search(r"<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", str(error), re.DOTALL)
    text = f"{match[1]}: {match[2]}" if match else str(error).strip().partition("\n")[0]
    return text[:300]
