"""Whose process this is, by name."""

import os

_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")  #: where `getpass.getuser` looks, which imports the terminal


def user_name() -> str:
    """Return the name of the user of this process, its uid where it has none."""
    named = next((name for variable in _VARIABLES if (name := os.environ.get(variable))), None)
    if named is not None:
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
