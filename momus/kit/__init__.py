"""What the modules that users name are made of, and users never name: a broker's subprocess, and what goes with it.

Owns `Broker` (`process.py`), one process for all of xdist's workers (`shared_process.py`), the file of a failed run
(`kept_run.py`), and names in paths of the control plane (`quoting.py`). Runs in a user's process: imports nothing of
the broker, of `client` or of `cli`, not even within functions. Start reading at `Broker` in `process.py`.
"""
