"""The demo: a broker, misbehaving clients of three makes, and every job over what they wrote.

It may import everything in the pipeline, momus, and the clients that the extra `demo` installs. Start at play.py;
traffic.py holds the clients.
"""
