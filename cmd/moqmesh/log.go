package main

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
)

// maxValue is the most that one value may take of a log line, in bytes. Strangers choose paths, names and reasons.
const maxValue = 1000

// newLogger writes one line per event: coloured on a terminal, plain key=value elsewhere.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: bounded}))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: bounded}))
}

// bounded cuts long texts short.
func bounded(_ []string, a slog.Attr) slog.Attr {
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	}
	if len(text) <= maxValue {
		return a
	}
	return slog.String(a.Key, strings.ToValidUTF8(text[:maxValue], "")+"…")
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
