"""What only a broker can do wrong, whoever its clients are: in its logs, and in what its coordinators wrote.

logs.py checks batches and where commits point, owners.py members of groups and their epochs, states.py the states of
transactions. running_time.py says when a broker ran: whether it had the time to do what was due.
"""
