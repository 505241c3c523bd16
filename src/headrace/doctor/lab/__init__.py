"""Children with a deadline: they hold what is examined, and may hang, crash, or eat all memory."""
