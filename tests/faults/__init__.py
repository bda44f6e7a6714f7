"""What breaks from outside: killed processes, full disks, two writers of one file."""
