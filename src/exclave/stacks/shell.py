"""Commands that a customer pastes into a shell, from argv that is data."""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Inner:
    """A command whose output becomes one argument, the end of one, or several."""

    argv: tuple[str, ...]
    before: str = ""
    """What the argument begins with; it has no character that a shell reads in double quotes."""
    is_list: bool = False

    def write(self) -> str:
        """Return it for a shell."""
        command = f"{self.before}$({shlex.join(self.argv)})"
        return command if self.is_list else f'"{command}"'


Word = str | Inner


def write_command(*words: Word) -> str:
    """Return a command as a line for a shell."""
    return " ".join(
        word.write() if isinstance(word, Inner) else shlex.quote(word) for word in words
    )
