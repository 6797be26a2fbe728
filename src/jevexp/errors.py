"""The one exception that means: the person who typed the command can fix this."""


class InputError(Exception):
    """Unusable input. The message is one line: what, what was found, what to do.

    Whoever raises it has written nothing and sent no task to a provider. The command line prints
    the message without a traceback and exits with status 2.
    """
