"""A foreign implementation of multicast DNS: publishes one relay and browses for others.

Usage: mdns.py ADDRESS SECONDS. It listens on the interface of that address. One JSON line per event.
"""
import json
import socket
import sys
import time

from zeroconf import IPVersion, ServiceBrowser, ServiceInfo, ServiceListener, Zeroconf

SERVICE = "_moq._udp.local."
SUBTYPE = "_default._sub._moq._udp.local."


def say(event, **fields):
    print(json.dumps({"ev": event, **fields}), flush=True)


class Listener(ServiceListener):
    def add_service(self, zc, kind, name):
        info = ServiceInfo(SERVICE, name)
        if not info.request(zc, 3000):
            say("unresolved", name=name)
            return
        txt = {k.decode(): v.decode() for k, v in info.properties.items() if v is not None}
        say("added", name=name, port=info.port, host=info.server, addresses=info.parsed_addresses(), txt=txt)

    def update_service(self, zc, kind, name):
        say("updated", name=name)

    def remove_service(self, zc, kind, name):
        say("removed", name=name)


def main():
    address, seconds = sys.argv[1], float(sys.argv[2])
    zc = Zeroconf(interfaces=[address], ip_version=IPVersion.V4Only)
    browser = ServiceBrowser(zc, SUBTYPE, Listener())
    instance = "ffffffffffffffff"  # the last id: everybody dials it
    info = ServiceInfo(
        SUBTYPE, f"{instance}.{SERVICE}", addresses=[socket.inet_aton(address)], port=9, server=f"{instance}.local.",
        properties={"fp": "a" * 64, "n": "0" * 32},
    )
    zc.register_service(info)
    say("published")
    time.sleep(seconds)
    zc.unregister_service(info)
    say("withdrawn")
    time.sleep(2)
    browser.cancel()
    zc.close()


main()
