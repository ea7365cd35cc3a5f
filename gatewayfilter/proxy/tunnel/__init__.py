"""Connections that are relayed unread: dialling, happy eyeballs, the relay."""
