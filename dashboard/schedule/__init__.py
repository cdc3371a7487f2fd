"""The schedule of nights, by the config, the crontab or a timer of systemd; and the watch over it."""
