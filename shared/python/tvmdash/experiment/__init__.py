"""What stands behind `exp_templates.Experiment`: points, rounds, stages and results of an experiment."""
