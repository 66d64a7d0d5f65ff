# SPDX-License-Identifier: Apache-2.0
"""What the checks share: reading C text without its comments, and walking the tree.  Line numbers are kept."""
import pathlib
import re
import sys

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text, keep_strings=True):
    """C text with comments (and, if asked, the content of literals) blanked; every line stays where it was."""
    def replace(match):
        token = match.group(0)
        if token.startswith("/"):
            return _blank(token)
        return token if keep_strings else token[0] + _blank(token[1:-1]) + token[-1]
    return _TOKEN.sub(replace, text)


def without_directives(text):
    """Blanks preprocessor lines, with their continuations."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda match: _blank(match.group(0)), text, flags=re.MULTILINE)


def files_under(root, folders, suffixes):
    """Sorted paths below root/folder with one of the suffixes."""
    found = []
    for folder in folders:
        base = pathlib.Path(root) / folder
        found += [path for path in base.rglob("*") if path.is_file() and path.suffix in suffixes]
    return sorted(found)


class Exceptions:
    """A file of lines "PLACE NAME REASON".  What is allowed must be said, with its reason, and must still be needed."""

    def __init__(self, root, name):
        self.name, self.findings, self.used = name, [], {}
        path = pathlib.Path(root) / name
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
            fields = line.split(None, 2)
            if not fields or line.startswith("#"):
                continue
            if len(fields) < 3:
                self.findings.append(f"{name}:{number}: expected: PLACE NAME REASON")
            else:
                self.used[(fields[0], fields[1])] = False

    def allow(self, place, name):
        if (place, name) not in self.used:
            return False
        self.used[(place, name)] = True
        return True

    def leftovers(self):
        unused = [f"{self.name}: {place} {name}: no longer needed" for (place, name), used in self.used.items() if not used]
        return self.findings + unused


def default_root():
    return pathlib.Path(__file__).resolve().parent.parent


def report(check, findings):
    """Prints findings, one a line, and gives the exit status."""
    for finding in findings:
        print(finding)
    print(f"{check}: {len(findings)} finding(s)", file=sys.stderr if findings else sys.stdout)
    return 1 if findings else 0
