"""Tables, migrations, one query module per noun, blobs, dialects."""
