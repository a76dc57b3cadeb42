"""The environment of an executor: context, shell, workspace, inputs and outputs."""
