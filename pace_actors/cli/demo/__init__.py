"""`pace demo`: three days of two people, played on a running `Pace`. Everything shown is read from it."""
