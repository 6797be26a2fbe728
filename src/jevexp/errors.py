"""The one exception that means: the person who typed the command can fix this."""

from jevexp.untrusted.console import printable_line


class InputError(Exception):
    """Unusable input. The message is one line: what, what was found, what to do.

    Whoever raises it has written nothing and sent no task to a provider. The command line prints
    the message without a traceback and exits with status 2.
    """

    def __init__(self, message: str) -> None:
        # What was found may be anybody's: a file's name, a key of an object, a server's words.
        super().__init__(printable_line(message).rstrip("\n"))
