"""The last document that was read, kept on the disk of the machine."""

from pathlib import Path
from typing import Final

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.runner.cloud.document import CloudDocument, parse_document
from exclave.runner.data_folder import write_durably

FILE: Final = "stack-document.json"
_log = Log("runner.document")


class DocumentFile:
    """A file of mode 0600 in the runner's data folder."""

    def __init__(self, data: Path) -> None:
        self._file = data / FILE

    def read(self) -> CloudDocument | None:
        """Return the document; None if there is none that this runner can read."""
        try:
            return parse_document(self._file.read_text())
        except (OSError, UnicodeDecodeError):
            return None
        except Problem as problem:
            _log.warning("stored_document_unusable", code=problem.code)
            return None

    def write(self, text: str) -> None:
        """Store the text of a document."""
        write_durably(self._file, text.encode())
