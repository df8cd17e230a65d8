"""The others: each the best way we know to do the same thing with one library or technique, in a file of its own."""
