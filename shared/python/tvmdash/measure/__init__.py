"""Raw measurements: samples, phases and spans as a measuring process writes them."""
