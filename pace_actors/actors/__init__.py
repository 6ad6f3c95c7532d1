"""The actors: each is one file, turns messages into inputs, and leaves every rule to the domain."""
