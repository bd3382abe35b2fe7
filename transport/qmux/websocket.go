package qmux

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// webSocket is a carrier on WebSocket messages.
type webSocket struct {
	ws     *websocket.Conn
	limit  int
	buf    *[]byte           // of the record that next returned last; nil between records
	heard  func()            // told of control frames
	answer func(ping string) // has the writer answer a ping
}

const (
	// webSocketBuffer makes one write of the system of a record and its header.
	webSocketBuffer = maxFrame00 + 16
	// controlWait bounds the sending of a control frame. Only the writer sends them, between messages.
	controlWait = 10 * time.Second
)

// The buffers are taken from here when there is a message: an idle connection holds none.
var (
	writeBuffers  sync.Pool // of the library
	recordBuffers = sync.Pool{New: func() any { b := make([]byte, maxFrame00+1); return &b }}
)

func newWebSocket(ws *websocket.Conn, d Draft) *webSocket {
	c := &webSocket{ws: ws, limit: maxFrame00} // next enforces it
	if d.records() {
		c.limit = maxRecord
	}
	ws.SetCloseHandler(func(int, string) error { return nil }) // finish has its own
	ws.SetPongHandler(func(string) error { c.control(); return nil })
	ws.SetPingHandler(func(text string) error {
		c.control()
		if c.answer != nil {
			c.answer(text)
		}
		return nil
	})
	return c
}

func (c *webSocket) control() {
	if c.heard != nil {
		c.heard()
	}
}

func (c *webSocket) next() ([]byte, error) {
	if c.buf != nil {
		recordBuffers.Put(c.buf)
		c.buf = nil
	}
	kind, r, err := c.ws.NextReader()
	switch {
	case err != nil:
		return nil, err
	case kind != websocket.BinaryMessage:
		return nil, violation("text message")
	}
	c.buf = recordBuffers.Get().(*[]byte)
	n, err := io.ReadFull(r, *c.buf)
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return nil, err
	case n > c.limit:
		return nil, violation("message of more than %d bytes", c.limit)
	case n == 0:
		return nil, errEmptyRecord
	}
	return (*c.buf)[:n], nil
}

func (c *webSocket) send(b *batch) error {
	return b.each(func(record []byte) error { return c.ws.WriteMessage(websocket.BinaryMessage, record) })
}

func (c *webSocket) pings() bool { return true }

func (c *webSocket) ping() error {
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(controlWait))
}

// pong answers a ping. The writer calls it.
func (c *webSocket) pong(text string) error {
	return c.ws.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(controlWait))
}

func (c *webSocket) finish() {
	end := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.ws.WriteControl(websocket.CloseMessage, end, time.Now().Add(closeWait))
}

func (c *webSocket) conn() net.Conn { return c.ws.NetConn() }
