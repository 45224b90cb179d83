"""Shell completion: `cronguard --show-completion bash` prints what that shell is to load.

What the command line knows is in the text, so that a TAB starts no Python; only job names are asked for, with
`--list-jobs`. The texts of bash and zsh share their tables (`case` means the same to both). fish has its own way.
"""

from __future__ import annotations

import shlex
from typing import Dict, List, Sequence

from cronguard.cli.tree import Node, Option, command_line
from cronguard.core.values import judged, one_of

SHELLS = ("bash", "zsh", "fish")

# What is to be typed for a metavar, in the words of the drivers below; every other is left to whoever types.
_KINDS = {"JOB": "job", "FILE": "file", "DIR": "dir"}


def completion(shell: str) -> List[str]:
    """The lines for one of SHELLS; UsageError for another."""
    judged("--show-completion", one_of(*SHELLS), shell)
    root = command_line()
    if shell == "fish":
        return _fish(root)
    driver = _BASH if shell == "bash" else _ZSH
    first = "#compdef cronguard\n" if shell == "zsh" else ""
    return (first + _INTRODUCTION + "\n".join(_tables(root)) + driver).splitlines()


_INTRODUCTION = """\
# Completion for cronguard; made by `cronguard --show-completion`, to be made again after an upgrade.

"""

# --- what bash and zsh share: functions of the words that were typed, without those that are options ---


def _tables(root: Node) -> List[str]:
    nodes = list(root.walk())
    return [
        *_table("_cronguard_verbs", {_key(node): " ".join(verb.name for verb in node.verbs) for node in nodes}),
        *_table("_cronguard_options", {_key(node): " ".join(_flags(node)) for node in nodes}),
        *_table("_cronguard_argument", {_key(node): _argument_kind(node) for node in nodes}),
        *_table("_cronguard_value", _values(nodes)),
    ]


def _table(name: str, entries: Dict[str, str]) -> List[str]:
    """A function that prints what belongs to its argument; keys with the same answer stand together."""
    by_answer: Dict[str, List[str]] = {}
    for key, answer in entries.items():
        if answer:
            anywhere = "*" if key.startswith("* ") else ""
            by_answer.setdefault(answer, []).append(anywhere + shlex.quote(key[len(anywhere) :]))
    cases = [f"        {'|'.join(keys)}) echo {shlex.quote(answer)} ;;" for answer, keys in by_answer.items()]
    return [f"{name}() {{", '    case "$1" in', *cases, "    esac", "}", ""]


def _key(node: Node) -> str:
    return " ".join(node.path)


def _flags(node: Node) -> List[str]:
    return [flag for option in node.options for flag in option.flags] + ["--help"]


def _argument_kind(node: Node) -> str:
    return next((_KINDS[argument.kind] for argument in node.arguments if argument.kind in _KINDS), "")


def _values(nodes: Sequence[Node]) -> Dict[str, str]:
    """`COMMAND --option`, or `* --option` for any, to what stands behind it: a kind, `any`, or `of` and the choices."""
    return {
        f"{'*' if option.shared else _key(node)} {flag}": _value_kind(option)
        for node in nodes
        for option in node.options
        for flag in option.flags
        if option.metavar
    }


def _value_kind(option: Option) -> str:
    return f"of {' '.join(option.choices)}" if option.choices else _KINDS.get(option.metavar, "any")


# `=` and `:` are words of their own to bash: --key=sl is three.
_BASH = """
_cronguard() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} called='' word value verbs i
    COMPREPLY=()
    if [[ $current == '=' ]]; then
        current=''
    elif [[ $before == '=' ]]; then
        before=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == -- ]]; then
            if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset $((i + 1))
            elif declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                COMPREPLY=($(compgen -c -- "$current"))
            else
                compopt -o default 2>/dev/null
            fi
            return
        fi
        if [[ $word == -* ]]; then
            [[ -z $(_cronguard_value "$called $word") ]] || ((i++))
            [[ ${COMP_WORDS[i]} != '=' ]] || ((i++))
        elif [[ " $(_cronguard_verbs "$called") " == *" $word "* ]]; then
            called=${called:+$called }$word
        fi
    done
    value=$(_cronguard_value "$called $before")
    verbs=$(_cronguard_verbs "$called")
    if [[ -z $value && $current == -* ]]; then
        value="of $(_cronguard_options "$called")"
    elif [[ -z $value && -n $verbs ]]; then
        value="of $verbs"
    elif [[ -z $value ]]; then
        value=$(_cronguard_argument "$called")
    fi
    case "$value" in
        of\\ *) COMPREPLY=($(compgen -W "${value#of }" -- "$current")) ;;
        job) COMPREPLY=($(compgen -W "$("$1" --list-jobs 2>/dev/null)" -- "$current")) ;;
        file) compopt -o default 2>/dev/null ;;
        dir) compopt -o dirnames 2>/dev/null ;;
    esac
}

complete -F _cronguard cronguard
"""

_ZSH = """
_cronguard() {
    local called='' word value verbs before=${words[CURRENT-1]} i
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        if [[ $word == -- ]]; then
            shift $i words
            ((CURRENT -= i))
            _normal
            return
        fi
        if [[ $word == -* ]]; then
            [[ -z $(_cronguard_value "$called $word") ]] || ((i++))
        elif [[ " $(_cronguard_verbs "$called") " == *" $word "* ]]; then
            called=${called:+$called }$word
        fi
    done
    value=$(_cronguard_value "$called $before")
    if [[ -z $value && $PREFIX == --*=* ]]; then
        value=$(_cronguard_value "$called ${PREFIX%%=*}")
        compset -P '*='
    fi
    verbs=$(_cronguard_verbs "$called")
    if [[ -z $value && $PREFIX == -* ]]; then
        value="of $(_cronguard_options "$called")"
    elif [[ -z $value && -n $verbs ]]; then
        value="of $verbs"
    elif [[ -z $value ]]; then
        value=$(_cronguard_argument "$called")
    fi
    case "$value" in
        of\\ *) compadd -- ${=value#of } ;;
        job) compadd -- ${(f)"$("${words[1]}" --list-jobs 2>/dev/null)"} ;;
        file) _files ;;
        dir) _files -/ ;;
    esac
}

if [ "$funcstack[1]" = _cronguard ]; then
    _cronguard "$@"
else
    compdef _cronguard cronguard
fi
"""

# --- fish ---

_FISH = """\
function __cronguard_at --description 'Do these words, in this order, stand before the cursor, and no --?'
    set -l typed (commandline -opc)
    contains -- -- $typed; and return 1
    for word in $argv
        set -l at (contains -i -- $word $typed); or return 1
        set -e typed[1..$at]
    end
    return 0
end

function __cronguard_behind --description 'Behind the --, where the command stands'
    contains -- -- (commandline -opc)
end

complete -c cronguard -f
complete -c cronguard -n __cronguard_behind -F
"""


def _fish(root: Node) -> List[str]:
    lines = [*_INTRODUCTION.splitlines(), *_FISH.splitlines()]
    for node in root.walk():
        here = f"__cronguard_at {_key(node)}".strip()
        for verb in node.verbs:
            nowhere = f"{here}; and not __fish_seen_subcommand_from {' '.join(each.name for each in node.verbs)}"
            summary = verb.help.partition("\n")[0]
            lines.append(_complete(nowhere, f"-a {verb.name}", summary))
        if _argument_kind(node) == "job":
            lines.append(_complete(here, "-a '(cronguard --list-jobs 2>/dev/null)'", "a job"))
        elif _argument_kind(node) == "file":
            lines.append(_complete(here, "-F", ""))
        if node.path or not node.verbs:
            lines += [_fish_option(here, option) for option in node.options]
        else:
            lines += [_fish_option("", option) for option in node.options if not option.shared]
    return lines


def _fish_option(here: str, option: Option) -> str:
    names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    kind = _value_kind(option) if option.metavar else ""
    value = {"": "", "file": " -r -F", "dir": " -x -a '(__fish_complete_directories)'"}.get(kind, " -x")
    if kind.startswith("of "):
        value += f" -a {shlex.quote(kind[3:])}"
    elif kind == "job":
        value += " -a '(cronguard --list-jobs 2>/dev/null)'"
    return _complete(here, names + value, option.help)


def _complete(here: str, what: str, about: str) -> str:
    condition = f" -n {shlex.quote(here)}" if here else ""
    return f"complete -c cronguard{condition} {what}" + (f" -d {_fish_quoted(about)}" if about else "")


def _fish_quoted(text: str) -> str:
    """fish knows no '\\"'\\"' as POSIX shells do."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
