"""The embedded model: its server, its weights, what of it is on this machine."""
