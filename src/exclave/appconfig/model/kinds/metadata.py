"""`metadata.toml`: what the app is called and how it presents itself."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import NEW, REQUIRED, Dead, Table, text, text_map


class Metadata(Table):
    """What the app is called and how it presents itself."""

    DEAD: ClassVar[Mapping[str, Dead]] = {
        "onboarding": Dead("It belongs to a site generator.", silent=True),
        "name": Dead("The app is called like its directory; write `display_name` for people."),
        "kubernetes_context": Dead("Write it into kubernetes_contexts.toml."),
    }

    version: str = text("The version of the format.", '"v2"', choices=("v1", "v2"), need=REQUIRED)
    display_name: str = text("The name that customers see.", '"Acme Analytics"')
    description: str = text("One sentence about the app.", '"Dashboards for everybody."')
    slack_webhook_url: str = text(
        "Where notices are sent.", '"https://hooks.slack.com/services/T0/B0/x"', format="url"
    )
    readme: str = text(
        "Markdown that is rendered for each install, or the file that holds it.",
        '"./README.md"',
        templated=True,
        reference=True,
    )
    label_colors: Mapping[str, str] = text_map(
        "Label key to hex colour.", '{ tier = "#ff8800" }', since=NEW, format="colour"
    )
    default_labels: Mapping[str, str] = text_map(
        "Labels that every install gets; values may be templates, keys not.",
        '{ region = "{{.nuon.cloud_account.aws.region}}" }',
        since=NEW,
        templated=True,
    )
