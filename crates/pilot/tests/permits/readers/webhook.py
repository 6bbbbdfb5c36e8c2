"""Verifies a delivery as a receiver would: {key, headers, body} on standard input, the event's id on standard output.

The first argument says by what: `standardwebhooks`, or the directory of this repository's own client.
"""

import json
import sys

by = sys.argv[1]
delivery = json.load(sys.stdin)
key, headers, body = delivery["key"], delivery["headers"], delivery["body"]
try:
    if by == "standardwebhooks":
        from standardwebhooks import Webhook

        event = Webhook(key).verify(body, headers)
    else:
        sys.path.insert(0, by)
        from pilot_client import verify_webhook

        event = verify_webhook(headers, body, [key])
except Exception as error:  # noqa: BLE001 (whatever it is, the delivery is not believed)
    sys.exit(f"{type(error).__name__}: {error}")
print(event["id"])
