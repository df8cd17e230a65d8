"""One benchmark per file; `benchmarks.catalogue` lists them."""
