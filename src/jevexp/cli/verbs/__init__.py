"""The verbs: a file here is one, and nothing else has to know of it.

Its `main(arguments)` returns the exit status. Its first line is the verb's line in the help of
`jevexp`: a docstring such as "`jevexp verify RUN...`: prove a run again from its files, offline."
"""

from pathlib import Path

_USAGE_WIDTH = 23


def verb_files() -> dict[str, Path]:
    """Every verb's name and file, in the order of the names."""
    files = [file for folder in __path__ for file in Path(folder).glob("[a-z]*.py")]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


def verbs_help() -> str:
    """A line a verb, from the files' first lines: importing the verbs would take seconds."""
    lines = []
    for file in verb_files().values():
        docstring = file.read_text(encoding="utf-8").partition("\n")[0].strip('"')
        usage, _, description = docstring.removeprefix("`jevexp ").partition("`: ")
        lines.append(f"  {usage:<{_USAGE_WIDTH}} {description.removesuffix('.')}")
    return "\n".join(lines)
