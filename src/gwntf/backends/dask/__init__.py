"""Work sent to a cluster: `tasks` speaks to its scheduler, `engine` says with what the workers compute.

`distributed` is imported here and nowhere else.
"""
