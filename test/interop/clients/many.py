"""python many.py URL --count N --seconds S: announces N broadcasts named many/<n>, waits, withdraws them all."""
import argparse
import asyncio
import json
import time

import moq

p = argparse.ArgumentParser()
p.add_argument("url")
p.add_argument("--count", type=int, default=2000)
p.add_argument("--seconds", type=float, default=3)
p.add_argument("--hash", required=True)
a = p.parse_args()


def say(**fields):
    print(json.dumps({"t": int(time.time() * 1000), **fields}), flush=True)


async def main():
    async with moq.Client(a.url, websocket_enabled=False, tls_fingerprints=[a.hash]) as client:
        broadcasts = []
        for n in range(a.count):
            b = client.create_broadcast(f"many/{n:05d}")
            b.announce()
            broadcasts.append(b)
        say(ev="published", count=len(broadcasts))
        await asyncio.sleep(a.seconds)
        for b in broadcasts:
            b.close()
        say(ev="withdrawn", count=len(broadcasts))
        await asyncio.sleep(2)


asyncio.run(main())
