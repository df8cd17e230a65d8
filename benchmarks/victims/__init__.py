"""What is stopped in the benchmarks: processes of many shapes, and how it is known that they live, and that they are gone."""
