"""Models that write summaries, behind one port: an HTTP chat server, an extractive one without a model, a scripted one."""
