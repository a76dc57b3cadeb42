"""Plans of all tools: handed in and fetched sealed, checked by policies, shown without secrets."""
