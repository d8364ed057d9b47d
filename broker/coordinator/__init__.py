"""The partitioned coordinator: state machines that replay their own log."""
