"""python media.py pub|sub URL PATH FILE: an fMP4 file through the relay, byte for byte.

pub sends the file twice over one broadcast: on the track "file" box by box (ftyp and moov, then one frame for each
moof and mdat, a new group at every fragment), and through the library's own fMP4 importer with its catalog. sub
writes what arrives on "file" to FILE and prints the catalog and what came on each track it names.
"""
import argparse
import asyncio
import hashlib
import json
import struct
import time

import moq

p = argparse.ArgumentParser()
p.add_argument("verb", choices=["pub", "sub"])
p.add_argument("url")
p.add_argument("path")
p.add_argument("file")
p.add_argument("--hash", required=True)
p.add_argument("--seconds", type=float, default=20)
a = p.parse_args()


def say(**fields):
    print(json.dumps({"t": int(time.time() * 1000), **fields}), flush=True)


def boxes(data):
    at = 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind.decode(), data[at:at + size]
        at += size


async def pub(client):
    data = open(a.file, "rb").read()
    fragments, head = [], b""
    for kind, box in boxes(data):
        if kind == "moof":
            fragments.append([box])
        elif fragments:
            fragments[-1].append(box)
        else:
            head += box
    broadcast = client.create_broadcast(a.path)
    track = broadcast.publish_track("file", moq.TrackInfo(timescale=1000, max_age_us=30_000_000))
    importer = broadcast.publish_container_stream(moq.ContainerFormat.FMP4)
    importer.write(head)
    broadcast.announce(moq.Route())
    say(ev="published", fragments=len(fragments), bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    await asyncio.sleep(3)  # the viewer subscribes meanwhile
    for n, fragment in enumerate(fragments):
        group = track.create_group(n)
        for frame in ([head] if n == 0 else []) + fragment:
            group.write_frame(frame, n * 200_000)
        group.finish()
        for box in fragment:
            importer.write(box)
        await asyncio.sleep(0.05)
    importer.finish()
    track.finish()
    say(ev="finished")
    await asyncio.sleep(a.seconds)


async def collect(broadcast, name):
    groups, tasks = {}, []

    async def read(group):
        frames = groups.setdefault(group.sequence, [])
        async for frame in group:
            frames.append(frame.payload)

    track = await broadcast.subscribe_track(name, moq.Subscription(max_age_us=30_000_000))
    async for group in track.groups_as_arrived():
        tasks.append(asyncio.create_task(read(group)))
    await asyncio.gather(*tasks)
    return [frame for sequence in sorted(groups) for frame in groups[sequence]]


async def sub(client):
    broadcast = await client.announced_broadcast(a.path)
    catalog = await broadcast.catalog()
    say(ev="catalog", video=sorted(catalog.video), codecs=[v.codec for v in catalog.video.values()])
    names = ["file", *sorted(catalog.video)]
    tracks = await asyncio.gather(*(asyncio.wait_for(collect(broadcast, n), a.seconds) for n in names))
    with open(a.file, "wb") as f:
        f.write(b"".join(tracks[0]))
    say(ev="summary", ok=True, tracks={n: {"frames": len(t), "bytes": sum(map(len, t))} for n, t in zip(names, tracks)})


async def main():
    async with moq.Client(a.url, websocket_enabled=False, tls_fingerprints=[a.hash]) as client:
        await {"pub": pub, "sub": sub}[a.verb](client)


asyncio.run(main())
