package look

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/moqmesh/moqmesh/admin"
)

// rows is how many lines of a list are shown.
const rows = 20

// printable keeps names from steering the terminal, and cuts long ones.
func printable(text string) string {
	const most = 60
	clean := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if cut := []rune(clean); len(cut) > most {
		return string(cut[:most-1]) + "…"
	}
	return clean
}

// table aligns columns. Cells are made printable.
type table struct {
	b strings.Builder
	w *tabwriter.Writer
}

func newTable(head ...any) *table {
	t := new(table)
	t.w = tabwriter.NewWriter(&t.b, 0, 0, 2, ' ', 0)
	t.row(head...)
	return t
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, printable(fmt.Sprint(c)))
	}
	fmt.Fprintln(t.w)
}

// text ends the table. all is how many rows there would be.
func (t *table) text(all int) string {
	_ = t.w.Flush() // into a buffer
	var out strings.Builder
	for line := range strings.Lines(t.b.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if all > rows {
		fmt.Fprintf(&out, "and %d more\n", all-rows)
	}
	return out.String()
}

// head is the first line: who this is.
func head(o *admin.Overview) string {
	text := fmt.Sprintf("%s  id %d  up %s", printable(cmp.Or(o.Node, "moqmesh relay")), o.Hop, admin.Age(o.Time, o.Started))
	if o.Draining {
		text += "  DRAINING"
	}
	return text + "\n"
}

// levels is the line of numbers.
func levels(t admin.Totals) string {
	cache := admin.Bytes(uint64(max(0, t.CacheBytes)))
	if t.CacheCapacity > 0 {
		cache += " of " + admin.Bytes(uint64(t.CacheCapacity))
	}
	return fmt.Sprintf("sessions %d  routes %d (%d held)  tracks %d  subscriptions %d served, %d upstream  failovers %d  cache %s\n",
		t.Sessions, t.Routes, t.HoldsPending, t.Tracks, t.Readers, t.UpstreamSubscriptions, t.Failovers, cache)
}

// status is everything once.
func status(o *admin.Overview) string {
	var b strings.Builder
	b.WriteString(head(o) + levels(o.Totals))
	fmt.Fprintf(&b, "sent %s, received %s\n", admin.Bytes(o.Totals.Sent), admin.Bytes(o.Totals.Received))
	b.WriteString(peerTable(o, nil) + trackTable(o) + routeTable(o) + sessionTable(o, nil))
	return b.String()
}

// top is what goes on, with rates since before; nil = there are none yet.
func top(before, now *admin.Overview) string {
	var b strings.Builder
	b.WriteString(head(now) + levels(now.Totals))
	r := newRates(before, now)
	fmt.Fprintf(&b, "sending %s, receiving %s\n", r.of("", now.Totals.Sent, true), r.of("", now.Totals.Received, false))
	b.WriteString(peerTable(now, r) + trackTable(now) + sessionTable(now, r))
	return b.String()
}

// rates are bytes per second, from two looks.
type rates struct {
	seconds        float64
	sent, received map[string]uint64 // before, by session; "" = all
}

func newRates(before, now *admin.Overview) *rates {
	r := &rates{sent: make(map[string]uint64), received: make(map[string]uint64)}
	if before == nil || before.Started != now.Started { // another relay by now
		return r
	}
	r.seconds = now.Time.Sub(before.Time).Seconds()
	r.sent[""], r.received[""] = before.Totals.Sent, before.Totals.Received
	for _, s := range before.Sessions {
		r.sent[s.ID], r.received[s.ID] = s.Sent, s.Received
	}
	for _, l := range links(before) {
		id := strconv.FormatUint(l.Session, 10)
		r.sent[id], r.received[id] = l.Sent, l.Received
	}
	return r
}

func links(o *admin.Overview) []admin.Link {
	out := slices.Clone(o.Accepted)
	for _, p := range o.Peers {
		out = append(out, p.Links...)
	}
	return out
}

// perSecond is the rate of one session, 0 if it is not known.
func (r *rates) perSecond(id string, now uint64, sent bool) uint64 {
	was := r.received
	if sent {
		was = r.sent
	}
	before, ok := was[id]
	if !ok || r.seconds <= 0 || now < before {
		return 0
	}
	return uint64(float64(now-before) / r.seconds)
}

// of is the rate as text; without rates, the total.
func (r *rates) of(id string, now uint64, sent bool) string {
	if r == nil || r.seconds <= 0 {
		return admin.Bytes(now)
	}
	return admin.Bytes(r.perSecond(id, now, sent)) + "/s"
}

func peerTable(o *admin.Overview, r *rates) string {
	var b strings.Builder
	if l := o.List; l != nil {
		fmt.Fprintf(&b, "\npeer list %s: %d peers", printable(l.Source), l.Peers)
		if l.Error != "" {
			fmt.Fprintf(&b, ", CANNOT BE USED: %s", printable(l.Error))
		}
		b.WriteString("\n")
	}
	if len(o.Peers) > 0 {
		t := newTable("PEER", "STATE", "SINCE", "FROM", "VERSION", "COST", "THEIRS", "RTT", "LOSS", "SENT", "RECEIVED", "LAST ERROR")
		for _, p := range first(o.Peers) {
			t.peer(o.Time, p, r)
		}
		b.WriteString("\n" + t.text(len(o.Peers)))
	}
	if len(o.Accepted) > 0 {
		t := newTable("PEER THAT DIALED US", "SESSION", "SINCE", "VERSION", "COST", "THEIRS", "RTT", "LOSS", "SENT", "RECEIVED")
		for _, l := range first(o.Accepted) {
			cells := append([]any{l.Remote, l.Session, admin.Age(o.Time, l.Since)}, linkCells(l, r)...)
			t.row(cells...)
		}
		b.WriteString("\n" + t.text(len(o.Accepted)))
	}
	return b.String()
}

// peer writes the row of a peer, or one for each of its sessions.
func (t *table) peer(now time.Time, p admin.Peer, r *rates) {
	problem := ""
	if p.LastError != "" {
		problem = fmt.Sprintf("%s ago: %s", admin.Age(now, p.LastErrorAt), p.LastError)
	}
	state := p.State
	if !p.NextDial.IsZero() {
		state += ", dials in " + admin.Age(p.NextDial, now)
	}
	about := []any{p.Key, state, admin.Age(now, p.Since), p.Source}
	if len(p.Links) == 0 {
		t.row(append(about, "", "", "", "", "", "", "", problem)...)
	}
	for _, l := range p.Links {
		t.row(append(append(slices.Clone(about), linkCells(l, r)...), problem)...)
	}
}

func linkCells(l admin.Link, r *rates) []any {
	id := strconv.FormatUint(l.Session, 10)
	return []any{
		l.Version, l.Cost, l.PeerCost, fmt.Sprintf("%.1fms", l.RTT), fmt.Sprintf("%.2f%%", 100*l.Loss),
		r.of(id, l.Sent, true), r.of(id, l.Received, false),
	}
}

func trackTable(o *admin.Overview) string {
	if len(o.Tracks) == 0 {
		return ""
	}
	list := slices.Clone(o.Tracks)
	slices.SortStableFunc(list, func(a, b admin.TrackEntry) int { return cmp.Compare(b.Readers, a.Readers) })
	t := newTable("BROADCAST", "TRACK", "READERS", "COPIES", "FROM", "GROUPS", "CACHED")
	for _, a := range first(list) {
		from := ""
		if a.Session != 0 {
			from = fmt.Sprint("session ", a.Session)
		}
		t.row(a.Path, a.Track, a.Readers, a.Copies, from, a.Groups, admin.Bytes(uint64(max(0, a.Bytes))))
	}
	return "\n" + t.text(len(list))
}

func routeTable(o *admin.Overview) string {
	if len(o.Routes) == 0 {
		return ""
	}
	t := newTable("ROUTE", "BY WAY OF", "COST", "SESSION", "ENTERED", "STATE", "BEHIND BY")
	for _, a := range first(o.Routes) {
		state := "live"
		switch {
		case a.Goaway:
			state = "leaving"
		case !a.Live:
			state = "stale"
		}
		t.row(a.Prefix, strings.Trim(fmt.Sprint(a.Hops), "[]"), a.Cost, a.Session, a.Source, state, a.Step)
	}
	return "\n" + t.text(len(o.Routes))
}

// sessionTable lists sessions, with rates the busiest first.
func sessionTable(o *admin.Overview, r *rates) string {
	if len(o.Sessions) == 0 {
		return ""
	}
	list := slices.Clone(o.Sessions)
	if r != nil {
		busy := func(s admin.Session) uint64 {
			return r.perSecond(s.ID, s.Sent, true) + r.perSecond(s.ID, s.Received, false)
		}
		slices.SortStableFunc(list, func(a, b admin.Session) int { return cmp.Compare(busy(b), busy(a)) })
	}
	t := newTable("SESSION", "REMOTE", "SINCE", "PATH", "ROLE", "VERSION", "RTT", "SENT", "RECEIVED")
	for _, s := range first(list) {
		t.row(s.ID, s.Remote, admin.Age(o.Time, time.Unix(s.Started, 0)), s.Path, s.Role, s.Version, fmt.Sprintf("%.1fms", s.RTT),
			r.of(s.ID, s.Sent, true), r.of(s.ID, s.Received, false))
	}
	return "\n" + t.text(len(list))
}

func first[T any](list []T) []T { return list[:min(len(list), rows)] }
