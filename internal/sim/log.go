package sim

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

// maxLog bounds the log of a run, in bytes; of a longer one the end is kept.
const maxLog = 1 << 20

// Log is what everybody in a cluster says, in one order, with the time since the beginning.
type Log struct {
	level slog.Level
	mu    sync.Mutex
	buf   bytes.Buffer
}

func newLog(level slog.Level) *Log { return &Log{level: level} }

// Logger returns a logger for one of them.
func (l *Log) Logger(who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: l.level, ReplaceAttr: sinceEpoch})).With("who", who)
}

func sinceEpoch(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.String("t", a.Value.Time().Sub(epoch).Round(time.Microsecond).String())
	}
	return a
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() > 2*maxLog {
		l.buf.Next(l.buf.Len() - maxLog)
	}
	return l.buf.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
