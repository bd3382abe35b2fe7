package main

import (
	"log/slog"
	"net"
	"os"
)

// States of a service, as systemd wants to be told them (sd_notify).
const (
	serviceReady    = "READY=1"
	serviceStopping = "STOPPING=1"
)

// notifyService tells the service manager a state of ours, if there is one that wants to know.
func notifyService(log *slog.Logger, state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if err := notify(name, state); err != nil {
		log.Warn("the service manager was not told our state", "state", state, "err", err)
	}
}

// notify sends one datagram to a Unix socket. A name that starts with @ is in the abstract namespace.
func notify(name, state string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte(state))
	return err
}
