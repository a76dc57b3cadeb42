"""Charts: from a folder or a chart repository to an artifact in Helm's own form."""
