"""Where people look already: each incident and night told once by e-mail, webhook or GitHub issue."""
