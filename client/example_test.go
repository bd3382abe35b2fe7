package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/relay"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// One client publishes a group of two frames, another waits for the broadcast and reads it.
func Example() {
	url, stop := exampleRelay()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var cfg client.Config
	cfg.TLS.Insecure = true // this relay made up its certificate

	publisher, err := client.Dial(ctx, url, cfg)
	check(err)
	defer publisher.Close()
	track, err := publishExample(publisher)
	check(err)

	viewer, err := client.Dial(ctx, url, cfg)
	check(err)
	defer viewer.Close()
	announced, err := viewer.Announced(ctx, "demo")
	check(err)
	defer announced.Close()
	broadcast, err := announced.Next(ctx)
	check(err)
	fmt.Println("announced:", broadcast.Path)
	reader, err := viewer.Subscribe(ctx, broadcast.Path, "video", client.Subscription{MaxAge: 5 * time.Second})
	check(err)
	defer reader.Close()

	check(writeExample(ctx, track))
	group, err := reader.NextGroup(ctx)
	check(err)
	defer group.Close()
	for {
		frame, err := group.ReadFrame(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		check(err)
		fmt.Printf("group %d at %d ms: %s\n", group.Sequence(), frame.Timestamp, frame.Payload)
	}
	// Output:
	// announced: demo
	// group 1 at 0 ms: a key frame
	// group 1 at 40 ms: what has changed
}

// publishExample makes the broadcast known: tracks first, so that nobody asks for one that is not there yet.
func publishExample(c *client.Client) (*client.TrackWriter, error) {
	b, err := c.Publish("demo")
	if err != nil {
		return nil, err
	}
	track, err := b.Track("video", media.DefaultInfo()) // timestamps in milliseconds
	if err != nil {
		return nil, err
	}
	return track, b.Announce(route.Cost{})
}

// writeExample writes a group once there is somebody to see it.
func writeExample(ctx context.Context, track *client.TrackWriter) error {
	if err := track.WaitSubscribed(ctx); err != nil {
		return err
	}
	group, err := track.Group(1)
	if err != nil {
		return err
	}
	defer group.Finish()
	if err := group.WriteFrame(0, []byte("a key frame")); err != nil {
		return err
	}
	return group.WriteFrame(40, []byte("what has changed"))
}

// exampleRelay is a relay on a loopback port that lets everybody in.
func exampleRelay() (url string, stop func()) {
	public, err := auth.NewPublic(auth.PublicRules{Both: []string{"**"}})
	check(err)
	r, err := relay.New(relay.Config{
		Listen:       endpoint.Config{Addr: "127.0.0.1:0"},
		Certificates: tlsconf.Config{Generate: []string{"localhost"}},
		Auth:         public,
	})
	check(err)
	return "https://" + r.Addr() + "/", func() { _ = r.Close() }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
