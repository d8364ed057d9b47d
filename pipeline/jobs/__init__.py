"""One module a job: its command line around functions of transforms/, audit/, migrate/ or report/.

Jobs may import every other room but demo. Start at registry.py, the table of jobs with what a job module must define.
A module NAME_follow.py is the `--follow` form of the job NAME.
"""
