"""A page on a program, a run or a job."""
