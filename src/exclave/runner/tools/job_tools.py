"""Tools for one job: found with the job's environment, named in its log."""

from exclave.runner.jobs.context import JobContext
from exclave.runner.processes.child import Command
from exclave.runner.tools.finder import Tool, ToolFinder


async def find_job_tool(
    finder: ToolFinder, context: JobContext, name: str, version: str = ""
) -> Tool:
    """Return a program that the job needs, and write to its log which one is used."""

    async def run(command: Command, seconds: float) -> tuple[int, str]:
        del seconds  # the job's own deadline is the limit
        printed = await context.capture(command)
        return printed.code, printed.stdout or printed.stderr

    tool = await finder.find(name, version, env=context.build_env(), run=run)
    context.log.system(tool.note)
    return tool
