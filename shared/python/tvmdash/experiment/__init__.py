"""Implementation of `exp_templates.Experiment`: points, rounds, stages and results."""
