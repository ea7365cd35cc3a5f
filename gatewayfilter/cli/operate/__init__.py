"""Commands of operation: log, gateway, doctor, pinned-apps, proxy-user, ca, config, db."""
