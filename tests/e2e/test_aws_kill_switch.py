"""The kill switch of a Stack in AWS, thrown by the customer while Terraform applies."""

from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.e2e.aws_life_site import open_life
from tests.e2e.aws_stop import start_apply, write_apply


def test_a_stop_in_the_account_ends_a_running_apply_and_no_role_can_be_taken_on(
    tmp_path: Path,
) -> None:
    with (
        open_life(tmp_path, write_apply(tmp_path)) as life,
        start_apply(life, hurried=True) as apply,
    ):
        apply.take_role()

        apply.stop_stack()

        apply.wait_until_ended()
        job, _ = apply.wait_until_reported()
        with pytest.raises(ClientError, match="AccessDenied"):
            apply.take_role()
        version = life.wait_for_state(apply.made["id"], "disabled")

    assert (job["kind"], job["state"], job["reason"]) == ("terraform", "cancelled", "disabled")
    assert version["version"] == 1
