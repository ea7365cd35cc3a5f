"""Commands of operation: log, gateway, doctor, pass-through, proxy-user, ca, config, db."""
