"""What late, overlapping and failing summaries do to a conversation: one load, several strategies."""
