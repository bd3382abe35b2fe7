// Package look shows a running relay in a terminal: status once, top again and again. Both read the overview of the
// relay's internal listener. What peers have named is printed without control characters.
package look

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/internal/tool"
)

const (
	timeout = 5 * time.Second
	// maxOverview bounds what is read, in bytes.
	maxOverview = 32 << 20
)

// Where says which relay to look at.
type Where struct {
	URL string `arg:"" optional:"" default:"http://127.0.0.1:4444/" help:"Internal listener of the relay (internal.listen)."`
}

// overview fetches the present state.
func (w Where) overview(ctx context.Context) (*admin.Overview, error) {
	target, err := w.page()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, fmt.Errorf("no relay answers at %s: %w", target, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d: is this the internal listener?", target, res.StatusCode)
	}
	o := new(admin.Overview)
	if err := json.NewDecoder(io.LimitReader(res.Body, maxOverview)).Decode(o); err != nil {
		return nil, fmt.Errorf("%s gives no overview: %w", target, err)
	}
	return o, nil
}

// page is the URL of the overview. A bare host:port will do.
func (w Where) page() (string, error) {
	text := w.URL
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is no address of an internal listener, such as http://127.0.0.1:4444/", w.URL)
	}
	return u.JoinPath("overview").String(), nil
}

// Status is the command that prints the state once.
type Status struct {
	Where
	JSON bool `name:"json" help:"Print everything as JSON."`
}

// Run prints. It fails if no relay answers.
func (c Status) Run(s *tool.Streams) error {
	o, err := c.overview(context.Background())
	if err != nil {
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(o)
	}
	_, err = io.WriteString(s.Out, status(o))
	return err
}

// Top is the command that shows what goes on, until it is interrupted.
type Top struct {
	Where
	Every time.Duration `default:"2s" help:"Pause between looks, at least 200ms."`
	Count int           `help:"End after so many looks; 0 = go on." default:"0"`
}

const minEvery = 200 * time.Millisecond

// wipeScreen moves a terminal's cursor home and wipes what was there.
const wipeScreen = "\x1b[H\x1b[2J"

// Run shows the state again and again. A relay that does not answer is waited for, but the first answer must come.
func (c Top) Run(s *tool.Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	before, err := c.overview(ctx)
	if err != nil {
		return err
	}
	wipe := ""
	if terminal(s.Out) {
		wipe = wipeScreen
	}
	if _, err := io.WriteString(s.Out, wipe+top(nil, before)); err != nil {
		return err
	}
	tick := time.NewTicker(max(c.Every, minEvery))
	defer tick.Stop()
	for n := 1; c.Count == 0 || n < c.Count; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now, err := c.overview(ctx)
		text := ""
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			text = err.Error() + "\n"
		default:
			text = top(before, now)
			before = now
		}
		if _, err := io.WriteString(s.Out, wipe+text); err != nil {
			return err
		}
	}
	return nil
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
