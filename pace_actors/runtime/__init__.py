"""Where actors live: the port they see, the hosts behind it, and what wakes and supervises them."""
