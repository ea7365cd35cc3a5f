"""Between a worker and the database: engine follower, store writer, decision recorder."""
