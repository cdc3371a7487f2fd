"""What changed from one TVM to another that a home has measured, and what of it somebody answers for."""
