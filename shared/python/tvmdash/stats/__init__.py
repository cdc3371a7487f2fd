"""Statistics: medians, intervals, ratios, tests of signs, noisy bisection. Knows nothing of TVM."""
