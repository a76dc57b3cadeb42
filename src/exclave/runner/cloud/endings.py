"""Whether a cloud is ending the runner's machine, as the metadata server knows it."""

from typing import Final

from exclave.base.json_values import list_or_empty, object_or_empty, text_or_empty
from exclave.runner.cloud.exchange import read_object
from exclave.runner.cloud.imds import AwsMetadata, AzureMetadata, GcpMetadata

_AZURE_ENDINGS: Final = frozenset({"Terminate", "Preempt"})


async def is_ending_in_aws(metadata: AwsMetadata) -> bool:
    """Return whether the group of the machine is about to terminate it."""
    state = await metadata.read_text("meta-data/autoscaling/target-lifecycle-state")
    return state.strip() == "Terminated"


async def is_ending_in_gcp(metadata: GcpMetadata) -> bool:
    """Return whether Google Cloud takes the machine away."""
    return (await metadata.read_text("instance/preempted")).strip() == "TRUE"


async def is_ending_in_azure(metadata: AzureMetadata) -> bool:
    """Return whether Azure has announced that it deletes the machine."""
    text = await metadata.read_events()
    listed = list_or_empty(read_object(text, "the events of the machine").get("Events"))
    kinds = {text_or_empty(object_or_empty(event).get("EventType")) for event in listed}
    return not kinds.isdisjoint(_AZURE_ENDINGS)
