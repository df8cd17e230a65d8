"""What a model's reply becomes in each provider's words: one module per provider, each a function from a reply. Pure; no state.

What another provider or model sealed (thoughts, signatures, ids of items) is left out: nobody but its maker takes it. Text that
was cut off is kept as far as it had come; a thought that was cut off is not.
"""
