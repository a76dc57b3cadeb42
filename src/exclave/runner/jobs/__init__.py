"""What an executor runs in: context, shell, workspace, inputs and outputs."""
