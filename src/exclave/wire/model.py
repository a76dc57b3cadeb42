"""The base of all wire models, pages and problems."""

from collections.abc import Mapping
from typing import Annotated, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from exclave.base.id_forms import ID_PATTERN

Item = TypeVar("Item")

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
"""A name that is safe in paths, labels and file names."""

Text = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]
"""Free text of people: reasons, comments."""

Id = Annotated[str, StringConstraints(pattern=f"^{ID_PATTERN}$")]
"""An id of ours."""

Labels = Annotated[
    dict[Name, Annotated[str, StringConstraints(max_length=200)]], Field(max_length=32)
]


class Request(BaseModel):
    """Base of request models: an unknown field is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Reply(BaseModel):
    """Base of reply models: clients ignore unknown fields, which a newer server may send."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def show_json(document: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return a JSON object as a field of a reply, which checks it."""
    return cast("dict[str, JsonValue]", document)


class Page(Reply, Generic[Item]):
    """A page of items, and the cursor of the next page if there is one."""

    items: list[Item]
    next: str | None = None


class ProblemReply(BaseModel):
    """An error as problem+json (RFC 9457) with our code, hint and facts."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
