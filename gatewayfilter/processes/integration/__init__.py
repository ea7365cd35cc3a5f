"""The process that decides for other proxies."""
