"""Components of type `terraform_module`."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import tables, text, text_map
from exclave.appconfig.model.kinds.components import PlannedComponent
from exclave.appconfig.model.kinds.shared import Repos, VarFile


class TerraformModule(PlannedComponent, Repos):
    """A Terraform module from a repository; its outputs are those of the module."""

    TYPE: ClassVar[str] = "terraform_module"
    OVERRIDE: ClassVar[str] = "tf_vars"

    terraform_version: str = text(
        "At least 1.8.0; absent: the newest.", '"1.11.3"', format="terraform_version"
    )
    vars: Mapping[str, str] = text_map(
        "Variables: Terraform converts text by their type; lists and tables arrive as JSON.",
        '{ size = "{{.nuon.inputs.inputs.size}}" }',
        templated=True,
    )
    env_vars: Mapping[str, str] = text_map(
        "Environment of Terraform.", '{ TF_LOG = "INFO" }', templated=True
    )
    var_file: tuple[VarFile, ...] = tables(
        VarFile, "Files of variables; each wins over those before it and over `vars`."
    )
