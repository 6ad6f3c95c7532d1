"""The real engine and actors on a seeded scheduler, with faults, held against an account of their own."""
