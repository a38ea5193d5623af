"""The runner of the documents' sessions is itself seen to find what is wrong."""

from pathlib import Path

import pytest

from tests.docs.console import Step, agrees, disagreements, run, steps

DOCUMENT = """
Text with `$ not` a command.

```console
$ KEY=deploy
$ curl -s http://127.0.0.1:8000/lease \\
    -d '{}'
{
  "ok": true
}
```

```sh
$ make run
```

1. In a list:

   ```console
   $ echo "$KEY"
   deploy
   ```
"""


def test_commands_and_answers_are_read_from_console_blocks_only() -> None:
    assert steps(DOCUMENT) == [
        Step(5, "KEY=deploy", ""),
        Step(6, "curl -s http://127.0.0.1:8000/lease \\\n    -d '{}'", '{\n  "ok": true\n}\n'),
        Step(20, 'echo "$KEY"', "deploy\n"),
    ]


def test_a_block_that_begins_with_an_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2: a console block begins with a command"):
        steps("```console\n{}\n```\n")


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ('{"ok": true}', '{"ok":true}\n', True),
        ('{\n  "ok": true,\n  "fence": 1\n}', '{"ok":true,"fence":1}', True),
        ('{"ok": true}', '{"ok":false}', False),
        ('{"error": "Lease is held"}', '{"error":"Leaseisheld"}', False),
        ('{"owner_token": "own_…", "n": …}', '{"owner_token":"own_abc","n":12}', True),
        ('{"owner_token": "own_…"}', '{"owner_token":"clm_abc"}', False),
        ('{"ok": true, …}', '{"ok":true,"code":"x"}', True),
        ('{"ok": true}', '{"ok":true,"code":"x"}', False),
        ('{"text": "a \\"b\\" {c}"}', '{"text":"a \\"b\\" {c}"}', True),
        ("HTTP/1.1 201 CREATED", "HTTP/1.1  201 CREATED\r\n", True),
        ("HTTP/1.1 201", "HTTP/1.1 200", False),
        ("", "", True),
        ("", "surprise", False),
    ],
)
def test_answers_are_compared_with_their_placeholders(expected: str, printed: str, same: bool) -> None:
    assert agrees(expected, printed) is same


def test_the_commands_of_a_document_share_one_shell(tmp_path: Path) -> None:
    document = steps("```console\n$ A=1\n$ false\n$ echo $A; echo err >&2\n$ cat <<< http://127.0.0.1:8000/x\n```\n")
    printed = run(document, "http://127.0.0.1:9", tmp_path, {"PATH": "/usr/bin:/bin"})
    assert printed == ["", "", "1\nerr\n", "http://127.0.0.1:8000/x\n"]


def test_a_document_that_fell_behind_goes_red(tmp_path: Path) -> None:
    document = "```console\n$ echo new\nold\n$ echo same\nsame\n```\n"
    found = disagreements(document, "http://127.0.0.1:9", tmp_path, {"PATH": "/usr/bin:/bin"})
    assert found == ["line 2: $ echo new\n  document: old\n  printed:  new"]


def test_a_shell_that_ends_early_goes_red(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended after 0 commands"):
        disagreements("```console\n$ exit 3\n```\n", "http://127.0.0.1:9", tmp_path, {"PATH": "/usr/bin:/bin"})
