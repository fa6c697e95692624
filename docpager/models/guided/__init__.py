"""Guided mode: the program drives the agent's functions, a small model answers small questions."""
