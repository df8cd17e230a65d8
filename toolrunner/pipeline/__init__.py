"""The rows of one call's life (DESIGN, One call's life): `prepare` 0-5, `act` 6-9, `finish` 10-12, and what they are made of.

`course` composes them for one call; `state` is the one mutable thing; `services` is what the runner hands in.
"""
