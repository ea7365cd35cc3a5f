"""Synchronisation of a worker with the database: engine follower, store writer, decision recorder."""
