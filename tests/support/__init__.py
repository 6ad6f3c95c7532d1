"""What several tests share: data, skips, guards, and the reader of the architecture."""
