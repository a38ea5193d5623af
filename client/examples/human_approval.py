"""An agent asks a person before it goes on, and waits as long as that takes, restarts of the server included.

    python client/examples/human_approval.py "Publish the draft?"

It prints a link. The person opens it in a browser, or decides in a terminal with `fencepost review`. The link is a
secret: whoever has it can decide.
"""

import sys

import fencepost


def main(question: str) -> int:
    """Ask, wait, act."""
    with fencepost.Client() as fp:
        request = fp.handoffs.create(
            {"question": question},
            states=["asked", "approved", "rejected"],
            final=["approved", "rejected"],
            permissions={"approved": "receiver", "rejected": "receiver"},
            audience="person",
            title=question[:120],
        )
        print(request.review_url, flush=True)
        request.wait_until("approved", "rejected", timeout=3600)
        print(f"{request.state}: {request.view['history'][-1]['note'] or 'no note'}")
        return 0 if request.state == "approved" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
