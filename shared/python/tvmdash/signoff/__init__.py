"""Sign-off: the changes from one TVM to another that a home has measured, and who answers for them."""
