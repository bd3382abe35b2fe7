package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

func TestNotify(t *testing.T) {
	for name, address := range map[string]string{
		"file":     filepath.Join(t.TempDir(), "notify"),
		"abstract": "@moqmesh-" + filepath.Base(t.TempDir()) + t.Name(),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			if err := notify(address, serviceReady); err != nil {
				t.Fatal(err)
			}
			var b [64]byte
			if err := l.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if n, err := l.Read(b[:]); err != nil || string(b[:n]) != "READY=1" {
				t.Errorf("got %q, %v", b[:n], err)
			}
		})
	}
	if err := notify(filepath.Join(t.TempDir(), "nobody"), serviceReady); err == nil {
		t.Error("no error without a listener")
	}
}
