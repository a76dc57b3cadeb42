"""Names of container images as people write them."""

DOCKER_HUB = "docker.io"


def expand_image(name: str) -> str:
    """Return the name of a repository with the host of its registry: `nginx` is on Docker Hub."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"{DOCKER_HUB}/{name}" if slash else f"{DOCKER_HUB}/library/{name}"


CACHE_FOLDER = "cache"
"""The folder of the org's registry that holds layers of builds for the next builds."""
