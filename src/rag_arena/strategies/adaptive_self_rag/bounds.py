"""What no model and no configuration can exceed."""

MOST_RETRIES = 2
