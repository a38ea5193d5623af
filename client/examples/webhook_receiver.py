"""A receiver of webhooks that acts once on each event, however often and to however many processes it is delivered.

    FENCEPOST_ONCE_SECRET=… python client/examples/webhook_receiver.py 8081
    curl -d '{"id": "evt_1", "amount": 5}' http://127.0.0.1:8081/

The sender repeats an event when it does not hear our answer. The event's own id is the key; the payload is bound to
it, so that the same id with other content is a mistake that is told, not a second charge.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fencepost

FP = fencepost.Client()


def charge(event: Any) -> dict[str, Any]:
    """What must not happen twice."""
    print(f"charging {event['amount']}", flush=True)
    return {"charged": event["amount"]}


class Receiver(BaseHTTPRequestHandler):
    """One POST, one event."""

    def do_POST(self) -> None:
        """200 when the event has been acted on, by whomever; 409 and 503 make the sender think or come again."""
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            answer = 200, FP.once("shop", f"event:{event['id']}", charge, payload=event, lease_ttl=30, wait=10)
        except fencepost.PayloadMismatch:
            answer = 409, {"error": "this id came with other content before"}
        except (fencepost.InProgressElsewhere, fencepost.Unreachable):
            answer = 503, {"error": "come again"}
        self.send_response(answer[0])
        self.end_headers()
        self.wfile.write(json.dumps(answer[1]).encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver) as receiver:
        print("ready", flush=True)
        receiver.serve_forever()
