package serve

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/moqmesh/moqmesh/auth"
)

// maxRequest bounds what a relay asks, in bytes.
const maxRequest = 128 << 10

// Handler answers relays over HTTP: POST of one event in JSON, whatever the path (auth 5).
type Handler struct {
	Decide auth.Leaser
	Logger *slog.Logger // nil discards
}

var _ http.Handler = (*Handler)(nil)

func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	r, end, err := auth.DecodeRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if end != nil {
		h.Decide.End(req.Context(), r, *end)
		h.log().Info("ended", "id", r.ID, "request", r, "reason", end.Reason, "duration", end.Duration, "sent", end.Sent, "received", end.Received)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	g, err := h.Decide.Authorize(req.Context(), r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.log().Info("granted", "event", string(r.Event), "id", r.ID, "request", r, "root", g.Root, "publish", g.Publish, "subscribe", g.Subscribe)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(auth.EncodeGrant(g, r.Path)) // a relay that is gone needs no answer
}

// refuse answers with the status of an error, and its reason as text.
func (h *Handler) refuse(w http.ResponseWriter, r auth.Request, err error) {
	status, reason := http.StatusServiceUnavailable, "unavailable"
	var e *auth.Error
	if errors.As(err, &e) && errors.Is(e, auth.ErrRefused) {
		status, reason = e.Status, strings.ToValidUTF8(e.Reason, "?")
	}
	h.log().Info("not granted", "event", string(r.Event), "id", r.ID, "request", r, "error", err)
	http.Error(w, reason, status)
}

func (h *Handler) log() *slog.Logger {
	if h.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.Logger
}
