"""What one subsystem leaves for others: the classes that its writer and its readers share, a module for each writer."""
