"""The stable codes of diagnostics and their meanings."""

from enum import StrEnum
from typing import Self


class Severity(StrEnum):
    """Whether a diagnostic is an error or a warning."""

    ERROR = "error"
    WARNING = "warning"


class Code(StrEnum):
    """The code of a diagnostic; programs rely on it, so its meaning never changes."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Self:
        """Attach the description to the code."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.doc = doc
        return code

    FILE_MISSING = "file_missing", "A file that every app needs does not exist."
    FOLDER_MISSING = "folder_missing", "The folder `components/` does not exist."
    FILE_UNREADABLE = "file_unreadable", "A file cannot be read, or is not text in UTF-8."
    FILE_OUTSIDE = "file_outside", "A link leads out of what belongs to the app."
    FILE_TOO_LARGE = "file_too_large", "A file, or all files together, pass a limit."
    TOO_MANY_FILES = "too_many_files", "The directory holds more files than the limit."
    TOO_MANY = "too_many", "There are more parts, or elements of a list or table, than the limit."
    LINK_AS_TEXT = (
        "link_as_text",
        "A file holds the path of another one, as git writes a link where there are no links.",
    )
    FILE_EMPTY = "file_empty", "A file in a folder holds no key; it is skipped."
    FILE_IGNORED = "file_ignored", "A file of an older form is not used any more."
    UNKNOWN_FILE = (
        "unknown_file",
        "A file or folder is not read, but its name is close to one that is.",
    )
    BOTH_FORMS = "both_forms", "A section is written both as a file and as a folder."
    LEGACY_FORM = "legacy_form", "The app is written as one file, a form that is not read any more."
    TOML_SYNTAX = "toml_syntax", "A file is not valid TOML."

    UNKNOWN_KEY = "unknown_key", "A key that the format does not know; an error with --strict."
    REMOVED_KEY = "removed_key", "A key that the format refuses today."
    DEPRECATED = "deprecated", "Something that still works, and has a better form."
    MISSING_KEY = "missing_key", "A key that is needed is missing or empty."
    WANTED_KEY = "wanted_key", "A key that the format asks for is missing."
    NEEDLESS_KEY = "needless_key", "A key that has no effect where it stands."
    ONE_OF = "one_of", "Of several keys exactly one must be given."
    WRONG_TYPE = "wrong_type", "A value has the wrong type."
    UNKNOWN_CHOICE = "unknown_choice", "A value is not one of those that are possible."
    BAD_FORMAT = "bad_format", "A value is not written as it must be (a duration, a schedule, …)."
    DOUBTFUL_FORMAT = "doubtful_format", "A value that will work here, but not everywhere."
    CONFLICT = "conflict", "Two keys contradict each other."

    REFERENCE_MISSING = "reference_missing", "A file that a value points to does not exist."
    REFERENCE_OUTSIDE = "reference_outside", "A value points to a file outside the app directory."
    REFERENCE_NOT_FOLLOWED = "reference_not_followed", "A remote file was not fetched."
    REFERENCE_FAILED = "reference_failed", "A remote file could not be fetched."
    FOLDER_REFUSED = (
        "folder_refused",
        "A folder of the app directory that a source names cannot be uploaded.",
    )
    REFERENCE_DOUBTFUL = "reference_doubtful", "A text starts like a reference to a file."

    BAD_NAME = "bad_name", "A name has characters that a name cannot have."
    DOUBTFUL_NAME = "doubtful_name", "A name that will work here, but not everywhere."
    DUPLICATE_NAME = "duplicate_name", "A name that must be unique occurs twice."
    UNKNOWN_COMPONENT = "unknown_component", "A component that does not exist is named."
    UNKNOWN_INPUT = "unknown_input", "An input that is not declared is named."
    UNKNOWN_GROUP = "unknown_group", "A group that is not declared is named."
    UNKNOWN_SECRET = "unknown_secret", "A secret that is not declared is named."
    UNKNOWN_ACTION = "unknown_action", "An action, or a step of one, that does not exist is named."
    UNKNOWN_ROLE = "unknown_role", "A role that does not exist is named."
    UNKNOWN_POLICY = "unknown_policy", "A named policy that does not exist is named."
    UNKNOWN_CONTEXT = "unknown_context", "A Kubernetes context that does not exist is named."
    UNKNOWN_RUNBOOK = "unknown_runbook", "A runbook that does not exist is named."
    UNKNOWN_BRANCH = "unknown_branch", "A branch, or a group of one, that does not exist is named."
    TYPE_CHANGED = (
        "type_changed",
        "A component has another type than in the version before, under the same name.",
    )
    UNSUPPORTED_TYPE = (
        "unsupported_type",
        "A component of a type that can be read and built on, and cannot be deployed.",
    )
    NOT_APPLIED = "not_applied", "A part of the app that this version reads and does nothing with."
    SELF_DEPENDENCY = "self_dependency", "A component depends on itself."
    DEPENDENCY_CYCLE = "dependency_cycle", "Components depend on each other in a circle."

    TEMPLATE_SYNTAX = "template_syntax", "A template cannot be parsed."
    TEMPLATE_FUNCTION = (
        "template_function",
        "A template calls a function that is refused here, or with too few or too many arguments.",
    )
    TEMPLATE_SCOPE = (
        "template_scope",
        "A template uses what does not exist yet when it is rendered.",
    )
    NOT_RENDERED = "not_rendered", "A template stands where nothing renders it."
    TEMPLATE_DOT = (
        "template_dot",
        "A template lacks `.nuon`, or the dot before it, and stays as it is.",
    )
    UNKNOWN_PATH = "unknown_path", "A template uses a value that the platform does not have."
    NO_OUTPUTS = "no_outputs", "A template uses outputs of a component that has none."

    CLOUD_MISMATCH = "cloud_mismatch", "A part of the app is for another cloud than its runner."
    MISSING_ROLE = "missing_role", "A role that every install needs is not defined."
    UNKNOWN_TEMPLATE = "unknown_template", "A template that a Stack cannot be made with is named."
    EMPTY_POLICY = "empty_policy", "An entry of a role's policies allows nothing."
    POLICY_ENGINE = "policy_engine", "A policy's engine does not fit its type."
    POLICY_CONTENTS = "policy_contents", "A policy's text cannot work."
    SILENT_TRIGGER = "silent_trigger", "A trigger that never fires."
    NO_DEFAULT_GROUP = "no_default_group", "A branch does not have exactly one default group."
    NO_SHEBANG = "no_shebang", "A script does not say what runs it."
