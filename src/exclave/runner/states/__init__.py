"""States of workspaces on the runner: sealed, fenced, and kept until the control plane has them."""
