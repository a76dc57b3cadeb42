"""The recipe of each artifact type. To build a new type, add a module and a line here."""

from collections.abc import Mapping
from functools import partial

from exclave.runner.builds.charts.recipe import build_chart
from exclave.runner.builds.images.built import build_image
from exclave.runner.builds.images.copied import copy_image
from exclave.runner.builds.kustomize import build_kustomize
from exclave.runner.builds.packed_folder import pack_source
from exclave.runner.builds.recipe import Recipe
from exclave.runner.builds.source_checks import check_files, check_module
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.specs import ACTION_SOURCE

RECIPES: Mapping[str, Recipe] = {
    "helm_chart": build_chart,
    "kustomize": build_kustomize,
    "terraform_module": partial(pack_source, check=check_module),
    "image_copy": copy_image,
    "image_build": build_image,
    ACTION_SOURCE: partial(pack_source, check=check_files),
}
"""By artifact type; those of components are the ones that the control plane enters."""


def find_recipe(type_: str) -> Recipe:
    """Return the recipe of an artifact type; raise for a type that this version does not know."""
    recipe = RECIPES.get(type_)
    if recipe is None:
        message = f"this runner cannot build a `{type_}`: update its program"
        raise WorkFailed(Reason.KIND_UNSUPPORTED, message)
    return recipe
