"""What is raised for a fault that cannot be set. A file of its own, so that a start need not load the others."""


class FaultError(ValueError):
    """A fault that cannot be set; the text says why."""


class NotHereError(FaultError):
    """A fault that acts inside a broker, asked of a proxy."""
