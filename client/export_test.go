package client

import (
	"context"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/transport"
)

// Accept is New for the other end of a connection.
func Accept(ctx context.Context, conn transport.Conn, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	sess, err := lite.Accept(ctx, conn, lite.Config{Hop: cfg.Hop, Versions: cfg.Versions, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	return serve(sess, cfg), nil
}

// Goaway sends GOAWAY.
func (c *Client) Goaway(uri string) { c.link.sess.Goaway(uri) }
