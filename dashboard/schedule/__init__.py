"""When nights should begin: by the config, the crontab or a timer of systemd; and whether they do."""
