"""The parts of the command line: what can be typed, what each command does, and how its answers look."""
