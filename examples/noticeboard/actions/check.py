#!/usr/bin/env python3
import os
import urllib.request

with urllib.request.urlopen(os.environ["URL"], timeout=5) as reply:
    print(f"{os.environ['URL']} answers {reply.status}")
    with open(os.environ["NUON_ACTIONS_OUTPUT_FILEPATH"], "a") as out:
        out.write(f"status={reply.status}\n")
