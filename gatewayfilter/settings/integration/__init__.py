"""Settings of what other proxies and resolvers ask of the filter."""
