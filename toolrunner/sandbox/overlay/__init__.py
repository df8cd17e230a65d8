"""Transactions: a call writes into a layer over its working directory, and what it changed is known exactly before it counts.

`layer` makes the folders, `changes` reads what is in them, `commit` carries it over, `ending` decides which.
"""

from toolrunner.sandbox.overlay.changes import LayerChange, changes
from toolrunner.sandbox.overlay.commit import commit
from toolrunner.sandbox.overlay.ending import OpenTransaction, Settled, settle
from toolrunner.sandbox.overlay.layer import Layer, NoLayer, Stage, find_layer, layers, make_layer

__all__ = [
    "Layer",
    "LayerChange",
    "NoLayer",
    "OpenTransaction",
    "Settled",
    "Stage",
    "changes",
    "commit",
    "find_layer",
    "layers",
    "make_layer",
    "settle",
]
