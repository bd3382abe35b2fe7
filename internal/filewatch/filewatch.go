// Package filewatch tells when files may have changed, however that is done: in place, by renaming another file over
// them, by swapping a link to a directory, by removing and making them anew.
package filewatch

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long things must be quiet: writers need more than one step.
	settle = 300 * time.Millisecond
	// patience is how long a restless directory can put off the news.
	patience = 2 * time.Second
	// interval is how often files are looked at in any case: not everything that changes what a path leads to can be
	// watched, and not every file system tells.
	interval = 2 * time.Second
)

// Watcher watches files. The goroutine behind it ends with Close.
type Watcher struct {
	files   []string
	changes chan struct{}
	stop    chan struct{}
	done    chan struct{}
	once    sync.Once

	// Of the goroutine.
	seen   []os.FileInfo // of files; nil = missing
	dirs   []os.FileInfo // of their directories, as they are watched
	notify *fsnotify.Watcher
}

// New starts to watch. It does not fail: files and directories may be missing, and come later.
func New(files ...string) *Watcher {
	w := &Watcher{
		files: files, changes: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		seen: make([]os.FileInfo, len(files)), dirs: make([]os.FileInfo, len(files)),
	}
	for i, f := range files {
		w.seen[i], _ = os.Stat(f)
	}
	w.watchDirectories()
	go w.run()
	return w
}

// Changes yields a value after something happened to one of the files, or near it: the reader finds out whether the
// content is another.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Close ends the watch and returns when its goroutine has ended. It may be called more than once.
func (w *Watcher) Close() {
	w.once.Do(func() { close(w.stop) })
	<-w.done
}

func (w *Watcher) run() {
	defer close(w.done)
	defer w.unwatch()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	quiet := time.NewTimer(settle)
	quiet.Stop()
	defer quiet.Stop()
	var restless time.Time // since when; zero = quiet
	for {
		events, errs := w.channels()
		select {
		case <-w.stop:
			return
		case <-quiet.C:
			restless = time.Time{}
			select {
			case w.changes <- struct{}{}:
			default:
			}
			continue
		case <-errs: //nolint:errcheck // an overflow: the tick sees what was lost
			continue
		case _, open := <-events:
			if !open {
				w.notify = nil
				continue
			}
		case <-tick.C:
			if !w.look() {
				continue
			}
		}
		if restless.IsZero() {
			restless = time.Now()
		}
		quiet.Reset(max(0, min(settle, patience-time.Since(restless))))
	}
}

func (w *Watcher) channels() (<-chan fsnotify.Event, <-chan error) {
	if w.notify == nil {
		return nil, nil
	}
	return w.notify.Events, w.notify.Errors
}

// look compares the files with what they were, and their directories with those that are watched.
func (w *Watcher) look() (changed bool) {
	for i, f := range w.files {
		now, _ := os.Stat(f)
		if !same(now, w.seen[i]) {
			w.seen[i], changed = now, true
		}
	}
	for i, f := range w.files {
		if now, _ := os.Stat(filepath.Dir(f)); !sameFile(now, w.dirs[i]) || w.notify == nil && now != nil {
			w.watchDirectories()
			return true
		}
	}
	return changed
}

// same reports whether a file is as it was, as far as can be told without reading it.
func same(a, b os.FileInfo) bool {
	return sameFile(a, b) && (a == nil || a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode())
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b)
}

// watchDirectories starts over with the directories as they are now. Where that does not work there is still the tick.
func (w *Watcher) watchDirectories() {
	w.unwatch()
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	for i, f := range w.files {
		dir := filepath.Dir(f)
		w.dirs[i], _ = os.Stat(dir)
		if n.Add(dir) != nil {
			w.dirs[i] = nil
		}
	}
	w.notify = n
}

func (w *Watcher) unwatch() {
	if w.notify != nil {
		_ = w.notify.Close()
		w.notify = nil
	}
}
