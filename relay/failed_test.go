package relay

import (
	"net"
	"testing"
	"time"
)

// TestListenerFails: a relay whose socket is gone says so.
func TestListenerFails(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, func(c *Config) { c.Listen.PacketConn = socket })
	select {
	case err := <-r.Failed():
		t.Fatalf("failed: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	_ = socket.Close()
	select {
	case err := <-r.Failed():
		if err == nil {
			t.Error("the relay fails without an error")
		}
	case <-time.After(5 * time.Second):
		t.Error("the relay does not notice")
	}
	closed := start(t, nil)
	_ = closed.Close()
	select {
	case err := <-closed.Failed():
		t.Errorf("a relay that is closed has failed: %v", err)
	default:
	}
}
