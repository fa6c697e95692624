"""From a query to a ranked page of passages: pure, over any store."""
