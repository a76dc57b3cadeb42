"""An app as it is uploaded and stored: archive, parts, digests."""
