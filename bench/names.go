package bench

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/route"
)

// minFrame is the smallest frame that can be checked, in bytes.
const minFrame = testmedia.MeshHeader

// runName is a broadcast of this run alone.
func runName() string { return "bench/" + rand.Text()[:10] }

// announceLimit is how long the relay that viewers use may take to learn of the broadcast.
const announceLimit = 15 * time.Second

var errNotAnnounced = fmt.Errorf("the broadcast is not announced to viewers after %v", announceLimit)

// awaitAnnounced returns when the relay that viewers connect to has announced a broadcast.
func awaitAnnounced(ctx context.Context, t Target, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, announceLimit, errNotAnnounced)
	defer cancel()
	hall, err := t.newHall(1, 1)
	if err != nil {
		return err
	}
	defer hall.close()
	session, err := hall.dial(ctx, 0)
	if err != nil {
		return fmt.Errorf("viewer: %w", err)
	}
	if err := session.await(ctx, name); err != nil {
		return fmt.Errorf("announcements: %w", err)
	}
	return nil
}

// randomHop is between 1 and 2^53-1: some clients read hops as doubles.
func randomHop() route.Hop {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return route.Hop(binary.BigEndian.Uint64(b[:])>>11 | 1)
}

// count is a number with what it counts.
func count(n uint64, text string) string { return fmt.Sprintf("%d %s", n, text) }
