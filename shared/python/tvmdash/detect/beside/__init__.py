"""Steps in the ratio to a reference: what a night says is known by its pairs of processes, so two nights are enough.

A night's number is the mean of the log ratios of its pairs. Its error is the scatter of pairs over the root of their
number; few pairs tell it badly, so it is pooled over the series of an experiment. Builds differ by luck as well (where
code and data lie): that term is learned from how much builds of one level differ, from what the other series of the
experiment do on tonight's build, and where nothing is known from a prior. A step is told where the difference is beyond
both. Only another artifact can be another TVM: nights of one artifact are one build, and no step lies within them.
"""
