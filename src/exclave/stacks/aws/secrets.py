"""What both forms know of secrets: lengths and texts."""

GENERATED_CHARACTERS = 63
SEAL_CHARACTERS = 64
SEAL_ABOUT = "Seals the Terraform state of this install; without it the state cannot be read"
DOCUMENT_ABOUT = "What this Stack made, for its runner to read; it holds no secret"
DESCRIPTION = 2000
TAG_VALUE = 256


def clean_about(text: str) -> str:
    """Return a description of a secret in the length that AWS takes."""
    return text[:DESCRIPTION]
