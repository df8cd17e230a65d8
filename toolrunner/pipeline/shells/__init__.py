"""Shells that live on between calls: `table` (those of one runner), `shell` (one), `line` (what one call has in it), `body`."""
