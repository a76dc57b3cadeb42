"""What the app may say about the identity of its jobs, and what it may not."""

from exclave.runner.jobs.role_variables import keep_role


def test_what_points_to_the_endpoint_of_a_job_is_not_the_apps_to_set() -> None:
    warnings: list[str] = []
    layer = {"AWS_EC2_METADATA_DISABLED": "false", "GCE_METADATA_HOST": "evil", "A": "1"}

    kept = keep_role(layer, warnings.append)

    assert kept == {"A": "1"}
    assert warnings == [
        f"warning: `{name}` is set by the runner; the job's value is not used"
        for name in ("AWS_EC2_METADATA_DISABLED", "GCE_METADATA_HOST")
    ]


def test_what_sdks_would_read_before_it_is_dropped_too() -> None:
    names = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "MSI_ENDPOINT", "IDENTITY_SERVER_THUMBPRINT")

    assert keep_role(dict.fromkeys(names, "x"), lambda _: None) == {}


def test_credentials_of_the_app_are_used_and_said_without_their_values() -> None:
    warnings: list[str] = []
    layer = {"AWS_ACCESS_KEY_ID": "AKIAVENDOR", "AWS_SECRET_ACCESS_KEY": "of the vendor"}

    assert keep_role(layer, warnings.append) == layer
    assert len(warnings) == 2
    assert not [text for text in warnings if "VENDOR" in text or "of the vendor" in text]


def test_a_region_is_a_usual_wish_that_needs_no_word() -> None:
    warnings: list[str] = []
    layer = {"AWS_REGION": "us-east-1", "GOOGLE_PROJECT": "other", "ARM_SUBSCRIPTION_ID": "s"}

    assert keep_role(layer, warnings.append) == layer
    assert warnings == []
