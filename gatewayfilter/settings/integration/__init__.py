"""Settings of the integration with other proxies and resolvers."""
