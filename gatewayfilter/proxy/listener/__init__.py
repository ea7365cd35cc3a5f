"""The listener: client connections from accept until their protocol and their handler are decided."""
