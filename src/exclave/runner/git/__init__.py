"""Source code from git repositories: one commit, no hooks, no submodules, no private addresses."""
