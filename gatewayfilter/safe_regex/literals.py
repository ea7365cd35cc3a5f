"""Literal extraction: finds the literals that every match of a regular expression contains, for indexing its rule."""

from gatewayfilter.safe_regex.syntax import Assertion, Chars, Choice, Node, Repeat, Sequence


def literals_of(tree: Node) -> tuple[str, ...]:
    """Returns the lower-case runs that every match contains."""
    runs: list[str] = []
    _collect_literals(tree, runs)
    return tuple(run for run in runs if run)


def _collect_literals(node: Node, runs: list[str]) -> None:
    """Appends the lower-case runs that every match contains; the last item of `runs` is the run that may be extended."""
    match node:
        case Chars(members):
            letter = _letter(members)
            if letter and runs:
                runs[-1] += letter
            else:
                runs.append(letter)
        case Sequence(parts):
            for part in parts:
                _collect_literals(part, runs)
        case Repeat(body, low) if low:
            runs.append("")
            _collect_literals(body, runs)
            runs.append("")
        case Choice() | Repeat():
            runs.append("")
        case Assertion():
            pass


def _letter(members: int) -> str:
    """Returns the one lower-case character that the set stands for, "" when there are several."""
    if members.bit_count() == 1:
        return chr(members.bit_length() - 1).lower()
    if members.bit_count() == 2:
        letter = chr(members.bit_length() - 1)
        if letter.isalpha() and members >> ord(letter.upper()) & 1:
            return letter
    return ""
