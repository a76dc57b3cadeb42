"""Go's template language: parsing, rendering, and static analysis of what a template reads.

Values are data only (dict, list, str, int, float, bool, None); a template runs no code, reads
nothing but them, and stops at its limits. Every failure is a `TemplateProblem`.
"""

from exclave.template.limits import Budget as Budget
from exclave.template.limits import Limits as Limits
from exclave.template.nodes import Template as Template
from exclave.template.problems import TemplateProblem as TemplateProblem
from exclave.template.references import Reference as Reference
from exclave.template.references import find_references as find_references
from exclave.template.rendering import is_template as is_template
from exclave.template.rendering import parse as parse
from exclave.template.rendering import render as render
from exclave.template.rendering import render_within as render_within
