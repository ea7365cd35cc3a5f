"""Commands for requests to unblock pages, bypass links and notifications."""
