package qmux

import (
	"strings"
	"testing"
	"testing/synctest"
)

// A peer opens streams, has each of them reset, and reads nothing. A stream that is over makes room for the next, so that the
// limit on streams does not end this.
func TestUnread(t *testing.T) {
	for _, d := range []Draft{Draft02, Draft00} {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const streams = 8
				p := meet(t, d, Config{MaxStreams: streams, KeepAlive: -1})
				p.hello(goldenParams)
				most := streams*controlsPerStream + controlsBeside
				for id := uint64(0); p.c.Context().Err() == nil; id += 4 {
					if id>>2 > uint64(2*most) {
						t.Fatalf("there is no end after %d streams", id>>2)
					}
					p.send(data(d, id, "x", false), appendStop(nil, id, 0))
					s, err := p.c.AcceptStream(t.Context())
					if err != nil {
						break
					}
					s.Stop(1)
					p.send(d.appendReset(nil, id, 0, 1))
				}
				if end := p.ended(); !strings.Contains(end.Error(), "unread") {
					t.Errorf("ended with %v", end)
				}
				_ = p.nc.Close()
			})
		})
	}
}
