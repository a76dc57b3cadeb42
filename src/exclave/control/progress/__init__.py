"""Apply events to workflows: advance steps, enqueue jobs, record what their results mean."""
