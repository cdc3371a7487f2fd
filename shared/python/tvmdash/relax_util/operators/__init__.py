"""Single operators: what they are, at which shapes they are measured, and each as a Relax module."""
