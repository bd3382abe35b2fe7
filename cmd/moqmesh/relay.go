package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/config"
	"github.com/moqmesh/moqmesh/relay"
)

// development runs a relay on localhost with no configuration and says how to try it.
func development(stdout, stderr io.Writer) error {
	cfg := config.Development()
	return serve(cfg, stderr, func() {
		host := "localhost:4443"
		fmt.Fprintf(stdout, "publish: moqmesh pub http://%s/ demo\n", host)
		fmt.Fprintf(stdout, "watch:   moqmesh sub http://%s/ demo\n", host)
		fmt.Fprintf(stdout, "look:    http://%s/\n", cfg.Internal.Listen)
	})
}

// configured runs a relay by its file, the environment and flags.
func configured(args []string, stdout, stderr io.Writer) error {
	cfg, err := config.Load(config.Input{Args: args, Env: os.Environ()})
	if errors.Is(err, config.ErrHelp) {
		return config.Usage(stdout)
	}
	if err != nil {
		return err
	}
	return serve(cfg, stderr, func() {})
}

// check reads everything that a relay would read before it starts, and says whether it would start. Nothing is bound and
// nobody is asked over the network.
func check(args []string, stdout io.Writer) error {
	cfg, err := config.Load(config.Input{Args: args, Env: os.Environ()})
	if errors.Is(err, config.ErrHelp) {
		_, err := fmt.Fprintln(stdout, "Usage: moqmesh check [FILE.toml] [flags as those of the relay]")
		return err
	}
	if err != nil {
		return err
	}
	warnings, err := cfg.Check()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(stdout, "warning: %s\n", w)
	}
	_, err = fmt.Fprintln(stdout, "ok")
	return err
}

// serve runs a relay until signals end it; ready is called when it serves.
func serve(cfg *config.Config, stderr io.Writer, ready func()) error {
	log := newLogger(stderr, cfg.Log.Level)
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	rc, err := cfg.Relay(log)
	if err != nil {
		return err
	}
	defer tuneRuntime(rc.Cache.Capacity, rc.Memory, log)()
	// From here on a signal means an orderly end, also one that comes while the sockets are being bound.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	r, err := relay.New(rc)
	if err != nil {
		return err
	}
	ready()
	sig, err := untilSignal(log, r, signals)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	log.Info("stopping", "signal", sig.String(), "drain", cfg.DrainTimeout)
	notifyService(log, serviceStopping)
	return drain(r, cfg.DrainTimeout, signals, log)
}

// untilSignal waits for the first signal, and reports the relay ready when it is. A relay that can serve nobody any more is
// an error: who supervises the process starts it anew.
func untilSignal(log *slog.Logger, r *relay.Relay, signals <-chan os.Signal) (os.Signal, error) {
	ready := r.Ready()
	for {
		select {
		case <-ready:
			notifyService(log, serviceReady)
			ready = nil
		case s := <-signals:
			return s, nil
		case err := <-r.Failed():
			return nil, err
		}
	}
}

var (
	errDeadline = errors.New("the drain deadline")
	errSecond   = errors.New("a second signal")
)

// closing is how long the last closes may take after the drain.
const closing = time.Second

// drain gives the sessions time to leave, until the deadline or a second signal. Closes that hang are left behind.
func drain(r *relay.Relay, timeout time.Duration, signals <-chan os.Signal, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	timer := time.AfterFunc(timeout, func() { cancel(errDeadline) })
	defer timer.Stop()
	if timeout == 0 {
		cancel(errDeadline)
	}
	go func() {
		select {
		case <-signals:
			cancel(errSecond)
		case <-ctx.Done():
		}
	}()
	done := make(chan error, 1)
	go func() { done <- r.Shutdown(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(closing):
		log.Warn("stopped without waiting for everything to close")
		return nil
	}
}
