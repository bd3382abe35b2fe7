package relay

// limitMetrics counts what limits have turned away, by the names of their settings.
func (r *Relay) limitMetrics() map[string]uint64 {
	pending, perAddr := r.listener.RefusedBy()
	return map[string]uint64{
		"handshakes": pending, "sessions_per_address": perAddr,
		"announcements": r.limited.Announcements.Load(), "announce_streams": r.limited.AnnounceStreams.Load(),
		"announce_rate": r.origin.Counters().Slowed, "subscriptions": r.limited.Subscriptions.Load(), "metadata": r.limited.Metadata.Load(),
		"frames": r.limited.Frames.Load(), "timeout": r.listener.TimedOut() + r.timeouts.Load(),
		"lateness": r.pressure.refused.Load(), "memory": r.pressure.memory.refused.Load(), "descriptors": r.web.refused(),
	}
}
