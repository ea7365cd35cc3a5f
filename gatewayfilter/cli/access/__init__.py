"""Commands on the accounts of the dashboard, and on the audit log."""
