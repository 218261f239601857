"""Stand-ins for other systems' packages, so that programs written for them run unmodified."""
