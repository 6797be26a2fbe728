"""Guards against what a stranger may have made: files, folders, answers, addresses, text."""
