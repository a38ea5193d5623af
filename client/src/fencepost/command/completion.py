"""Shell completion, made from the words that the parser knows, so that it cannot fall behind.

eval "$(fencepost completion bash)"
eval "$(fencepost completion zsh)"
fencepost completion fish | source
"""

import argparse

SHELLS = ("bash", "zsh", "fish")


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """What the shell reads."""
    tree = words(parser)
    if shell == "fish":
        return _fish(tree)
    bash = _bash(tree)
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash}" if shell == "zsh" else bash


def words(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], list[str]]:
    """For each path of verbs, what may come next."""
    found: dict[tuple[str, ...], list[str]] = {path: []}
    for action in parser._actions:
        found[path] += [option for option in action.option_strings if option.startswith("--")]
        if isinstance(action, argparse._SubParsersAction):
            found[path] += list(action.choices)
            for name, inner in action.choices.items():
                found |= words(inner, (*path, name))
        elif action.choices and not action.option_strings:
            found[path] += [str(choice) for choice in action.choices]
    return found


def _bash(tree: dict[tuple[str, ...], list[str]]) -> str:
    cases = "".join(f'    "{" ".join(path)}") next="{" ".join(after)}" ;;\n' for path, after in tree.items())
    nouns = " ".join(sorted({path[0] for path in tree if len(path) > 1}))
    return f"""_fencepost() {{
  local word path="" next="" current="${{COMP_WORDS[COMP_CWORD]}}" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    [ "$word" = "--" ] && return
    case "$word" in -*) continue ;; esac
    if [ -z "$path" ]; then path="$word"
    elif [[ " {nouns} " == *" $path "* ]]; then path="$path $word"
    fi
  done
  case "$path" in
{cases}  esac
  COMPREPLY=($(compgen -W "$next" -- "$current"))
}}
complete -o default -F _fencepost fencepost
"""


def _fish(tree: dict[tuple[str, ...], list[str]]) -> str:
    lines = ["complete -c fencepost -f"]
    for path, after in tree.items():
        verbs = [word for word in after if not word.startswith("-")]
        options = [word.removeprefix("--") for word in after if word.startswith("-")]
        seen = " and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
        deeper = f"not __fish_seen_subcommand_from {' '.join(verbs)}" if verbs else ""
        condition = "; and ".join(part for part in (seen.replace(" and ", "; and "), deeper) if part)
        test = f" -n '{condition}'" if condition else ""
        lines += [f"complete -c fencepost{test} -a '{' '.join(verbs)}'"] if verbs else []
        lines += [f"complete -c fencepost{test} -l {option}" for option in options]
    return "\n".join(lines) + "\n"
