"""One module a job, each of them functions from DataFrame to DataFrame with a command line around them."""
