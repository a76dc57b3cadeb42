"""Publish the template of a version, for commands and links that name its address."""

from exclave.base.errors import Unavailable
from exclave.base.logs import Log
from exclave.control.deps import Deps
from exclave.control.stacks.cloud_files import Prepared, read_file
from exclave.domain.stacks import Cloud

log = Log("stacks")

_FORM = "cloudformation"


async def publish_template(deps: Deps, ready: Prepared) -> str:
    """Store the template of a version in the operator's bucket; return its address.

    Return an empty text if there is no bucket, or if it does not answer: the template can be
    applied without it, so nobody has to wait.
    """
    bucket = deps.template_bucket
    if bucket is None or ready.model.cloud is not Cloud.AWS:
        return ""
    template = next((file for file in ready.files if file.form == _FORM), None)
    if template is None:
        return ""
    try:
        if not bucket.has(template.sha256):
            await bucket.store(template.sha256, await read_file(deps, template))
    except Unavailable as problem:
        log.warning("template_not_published", version=ready.version.id, error=problem.message)
        return ""
    return bucket.build_url(template.sha256)
