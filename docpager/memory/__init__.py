"""Memory tiers: archival and recall storage, working context, FIFO queue, queue manager."""
