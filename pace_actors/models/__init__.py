"""Models that write summaries, behind one port: a chat server, an extractive one without a model, a scripted one."""
