"""Apps: what a vendor delivers, as it is stored."""

from dataclasses import dataclass
from datetime import datetime

from exclave.domain.configs import Config
from exclave.domain.identity import OrgId


@dataclass(frozen=True, slots=True)
class App:
    """An app of an org."""

    org_id: OrgId
    id: str
    name: str
    config_id: str | None
    """Its current version; None as long as it was never synced."""
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class ListedApp:
    """An app with its current version and the number of its installs."""

    app: App
    config: Config | None
    installs: int

    @property
    def id(self) -> str:
        """The id of the app, which serves as a cursor."""
        return self.app.id
