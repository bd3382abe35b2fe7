package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// loadComes is how long a load gets to come up before a profile begins.
const loadComes = 2 * time.Second

// profiling keeps a profile of the first relay of a case, if wanted, and tells how that went. It ends with ctx.
func (b *bed) profiling(ctx context.Context, n *node, name string) <-chan error {
	done := make(chan error, 1)
	if b.profiles == "" {
		done <- nil
		return done
	}
	go func() {
		err := sleep(ctx, loadComes)
		if err == nil {
			err = b.profile(ctx, n, name)
		}
		done <- err
	}()
	return done
}

// profile writes a CPU profile of a relay, which takes as long as the window, to file case.pprof of the folder.
func (b *bed) profile(ctx context.Context, n *node, name string) error {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", n.internal, max(int(b.window.Seconds()), 1))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile of the relay: %s", resp.Status)
	}
	f, err := os.Create(filepath.Join(b.profiles, name+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// freeAddress finds a TCP address that is free.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
