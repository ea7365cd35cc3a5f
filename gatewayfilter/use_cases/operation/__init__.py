"""Operation of the filter: its own check, messages to the operator, the users of the proxy, the operator's model."""
