"""The agent: the loop, the functions it offers, the citations it checks, the trace it leaves."""
