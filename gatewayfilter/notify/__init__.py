"""Messages to the operator: by webhook, mail, ntfy, or a program of the operator's."""
