"""`remeasure`: points measured again for tonight's subsystems."""
