"""The pages of the installation: HTTPS, settings, backup, accounts, audit, state."""
