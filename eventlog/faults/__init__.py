"""Programs that break a log on purpose, and what they hold it to afterwards. See docs/eventlog-testing.md."""
