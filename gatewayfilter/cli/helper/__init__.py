"""Commands that decide for other proxies."""
