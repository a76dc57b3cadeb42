"""The step graph of each type of workflow: pure, made once, stored, never made again."""
