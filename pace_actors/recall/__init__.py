"""Finding again what was said, learnt and noted: one index behind a port, and its twin in memory."""
