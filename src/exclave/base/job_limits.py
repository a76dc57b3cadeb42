"""Size limits of a job: checked when an app is synced and again when a job is created."""

from typing import Final

ENV_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
VALUE: Final = 32_768
"""Characters of a variable of the environment, an argument, or the default of a secret."""
SCRIPT: Final = 262_144
"""Characters of a script or a policy."""
