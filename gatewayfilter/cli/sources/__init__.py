"""The source and publish commands: subscriptions."""
