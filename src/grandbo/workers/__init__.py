"""Workers: level-triggered, without a queue. A missing row is the to-do list."""
