package route_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

// model is the table done the slow and obvious way: lists of everything, searched and recomputed in full after
// each event. It follows the text of the rules and shares no code with the table.
type model struct {
	hop        route.Hop
	maxHops    int
	quarantine bool

	now       time.Duration
	seq       uint64
	started   int // counts timers, for the order of those due at one instant
	sessions  []*modelSession
	adverts   []*modelAdvert
	marks     []*modelMark
	consumers []*modelConsumer
	effects   []route.Effect
}

type modelSession struct {
	route.SessionInfo
	identity route.Hop
	learned  bool
	goaway   bool
}

type modelAdvert struct {
	s      *modelSession
	id     route.AdvertID
	prefix string
	reason route.Reason // 0: it is a route
	hops   []route.Hop
	cost   route.Cost
	seq    uint64
	stale  bool
}

type modelMark struct {
	prefix string
	hop    route.Hop
	due    time.Duration
	order  int
}

type modelConsumer struct {
	id    route.ConsumerID
	s     *modelSession
	x     route.Hop
	root  string
	local bool
	// through is the mount that it looks through; nil = none.
	through *paths.Mount
	names   map[string]*modelName
}

type modelName struct {
	sent      *modelContent
	due       time.Duration // of the hold; 0 none
	order     int
	was       *modelContent // R35: retracted
	waitUntil time.Duration
	waitOrder int
}

type modelContent struct {
	hops []route.Hop
	cost route.Cost
}

func (m *model) session(id route.SessionID) *modelSession {
	i := slices.IndexFunc(m.sessions, func(s *modelSession) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return m.sessions[i]
}

func (m *model) advert(id route.SessionID, ad route.AdvertID) *modelAdvert {
	i := slices.IndexFunc(m.adverts, func(a *modelAdvert) bool { return a.s.ID == id && a.id == ad })
	if i < 0 {
		return nil
	}
	return m.adverts[i]
}

// apply is one event; timers are the caller's.
func (m *model) apply(e route.Event) error {
	err := m.do(e)
	m.settle()
	return err
}

func (m *model) do(e route.Event) error {
	switch e := e.(type) {
	case route.SessionUp:
		if m.session(e.ID) != nil {
			return route.ErrInUse
		}
		s := &modelSession{SessionInfo: e.SessionInfo, identity: e.Hop}
		if s.identity == 0 {
			s.identity = e.Assigned
		}
		m.sessions = append(m.sessions, s)
		return nil
	case route.Announce:
		return m.announce(e)
	case route.Update:
		return m.update(e)
	case route.Listen:
		return m.listen(e)
	case route.Unlisten:
		n := len(m.consumers)
		m.consumers = slices.DeleteFunc(m.consumers, func(c *modelConsumer) bool { return c.id == e.Consumer })
		if len(m.consumers) == n {
			return route.ErrUnknownConsumer
		}
		return nil
	case route.SessionDown:
		return m.down(e.ID)
	case route.SessionGrant:
		return m.grant(e)
	case route.Goaway:
		s := m.session(e.Session)
		if s == nil {
			return route.ErrUnknownSession
		}
		s.goaway = true
		for _, a := range m.adverts {
			if a.s == s {
				a.cost = route.Cost{Warm: route.MaxCost, Cold: route.MaxCost}
			}
		}
		return nil
	case route.Withdraw:
		return m.withdraw(e)
	}
	panic("unknown event")
}

func (m *model) down(id route.SessionID) error {
	s := m.session(id)
	if s == nil {
		return route.ErrUnknownSession
	}
	m.consumers = slices.DeleteFunc(m.consumers, func(c *modelConsumer) bool { return c.s == s })
	m.adverts = slices.DeleteFunc(m.adverts, func(a *modelAdvert) bool {
		if a.s == s && a.reason == 0 {
			m.gone(a, route.GoneLost)
		}
		return a.s == s
	})
	m.sessions = slices.DeleteFunc(m.sessions, func(o *modelSession) bool { return o == s })
	return nil
}

func (m *model) grant(e route.SessionGrant) error {
	s := m.session(e.ID)
	if s == nil {
		return route.ErrUnknownSession
	}
	s.Publish, s.Subscribe = e.Publish, e.Subscribe
	ofSession := slices.DeleteFunc(slices.Clone(m.adverts), func(a *modelAdvert) bool { return a.s != s })
	slices.SortFunc(ofSession, func(a, b *modelAdvert) int { return cmp.Compare(a.id, b.id) })
	for _, a := range ofSession {
		switch reaches := s.publishes(a.prefix, paths.All, nil); {
		case a.reason == 0 && !reaches:
			m.gone(a, route.GoneDetached)
			m.decline(a, route.NotGranted)
		case a.reason == route.NotGranted && reaches:
			m.attach(a)
		}
	}
	return nil
}

func (m *model) listen(e route.Listen) error {
	s := m.session(e.Session)
	switch {
	case s == nil:
		return route.ErrUnknownSession
	case slices.ContainsFunc(m.consumers, func(c *modelConsumer) bool { return c.id == e.Consumer }):
		return route.ErrInUse
	}
	c := &modelConsumer{id: e.Consumer, s: s, x: s.identity, root: e.Root, local: e.Local, through: e.Through, names: map[string]*modelName{}}
	if (s.Wire == route.WireLite04 || s.Wire == route.WireLite05) && s.Hop == 0 && e.Exclude != 0 {
		c.x = e.Exclude
		if !s.learned {
			s.learned, s.identity = true, e.Exclude
		}
	}
	m.consumers = append(m.consumers, c)
	return nil
}

func (m *model) announce(e route.Announce) error {
	s := m.session(e.Session)
	if s == nil {
		return route.ErrUnknownSession
	}
	if a := m.advert(e.Session, e.Advert); a != nil {
		if a.prefix == e.Prefix && among(s.Wire, route.WireLite05, route.WireMoqt, route.WireMoqtCluster) {
			return m.update(route.Update{Session: e.Session, Advert: e.Advert, Advertised: e.Advertised})
		}
		return route.ErrDuplicate
	}
	if slices.ContainsFunc(m.adverts, func(a *modelAdvert) bool { return a.s == s && a.prefix == e.Prefix }) {
		return route.ErrDuplicate
	}
	a := &modelAdvert{s: s, id: e.Advert, prefix: e.Prefix}
	reason, err := m.judge(a, e.Advertised)
	if err != nil {
		return err
	}
	m.adverts = append(m.adverts, a)
	if reason != 0 {
		m.decline(a, reason)
		return nil
	}
	m.attach(a)
	return nil
}

func (m *model) update(e route.Update) error {
	s := m.session(e.Session)
	if s == nil {
		return route.ErrUnknownSession
	}
	a := m.advert(e.Session, e.Advert)
	if a == nil {
		return route.ErrUnknownAdvert
	}
	if among(s.Wire, route.WireLite01, route.WireLite03, route.WireLite04) {
		return route.ErrDuplicate
	}
	next := *a
	reason, err := m.judge(&next, e.Advertised)
	if err != nil {
		return err
	}
	a.hops, a.cost = next.hops, next.cost
	switch {
	case reason != 0:
		if a.reason == 0 {
			m.gone(a, route.GoneDetached)
		}
		m.decline(a, reason)
	case a.reason != 0:
		m.attach(a)
	default:
		m.claim(a)
	}
	return nil
}

func (m *model) attach(a *modelAdvert) {
	m.seq++
	a.seq, a.reason = m.seq, 0
	m.claim(a)
	a.stale = m.marked(a) // from birth: no RouteGone
}

func (m *model) decline(a *modelAdvert, reason route.Reason) {
	a.reason, a.stale = reason, false
	m.effects = append(m.effects, route.Declined{Session: a.s.ID, Advert: a.id, Prefix: a.prefix, Reason: reason})
}

func (m *model) gone(a *modelAdvert, how route.GoneHow) {
	m.effects = append(m.effects, route.RouteGone{Session: a.s.ID, Advert: a.id, Prefix: a.prefix, How: how})
}

// judge is section 2.5: it fills in list and cost.
func (m *model) judge(a *modelAdvert, ad route.Advertised) (route.Reason, error) {
	s := a.s
	if s.Wire != route.WireLocal {
		seen := map[route.Hop]bool{}
		for _, h := range ad.Hops {
			if h != 0 && seen[h] {
				return 0, route.ErrHops
			}
			seen[h] = true
		}
		if len(ad.Hops) > 32 {
			return 0, route.ErrHops
		}
	}
	list := slices.Clone(ad.Hops)
	switch {
	case among(s.Wire, route.WireLocal, route.WireLite01, route.WireMoqt):
		list = nil
	case s.Wire == route.WireLite03:
		list = make([]route.Hop, len(ad.Hops))
	case among(s.Wire, route.WireLite05, route.WireLite06):
		if ad.Sender != 0 && slices.Contains(list, ad.Sender) {
			return route.Reflected, nil
		}
		list = append(list, ad.Sender)
		if len(list) > 32 {
			return route.NoRoom, nil
		}
	}
	received := len(list)
	if slices.Contains(list, m.hop) {
		return route.Loop, nil
	}
	if s.Wire != route.WireLocal {
		if len(list) == 0 {
			list = []route.Hop{s.Stamp, 0}
		} else if list[0] == 0 {
			switch {
			case len(list) == 32:
				return route.NoRoom, nil
			case slices.Contains(list, s.Stamp):
				return route.StampTaken, nil
			}
			list = append([]route.Hop{s.Stamp}, list...)
		}
		if s.Wire != route.WireLite01 && len(list) > m.maxHops {
			return route.TooManyHops, nil
		}
	}
	a.hops, a.cost = list, m.charge(s, ad.Cost, received)
	if !a.s.publishes(a.prefix, paths.All, nil) {
		return route.NotGranted, nil
	}
	return 0, nil
}

func (m *model) charge(s *modelSession, c route.Cost, received int) route.Cost {
	switch s.Wire {
	case route.WireLocal, route.WireLite06:
	case route.WireMoqtCluster:
		c.Cold = route.MaxCost
	default:
		c = route.Cost{Warm: 0, Cold: route.MaxCost}
		if received > 1 {
			c.Warm = route.MaxSum
		}
	}
	for _, half := range []*uint64{&c.Warm, &c.Cold} {
		if *half = min(*half, route.MaxCost); *half < route.MaxCost {
			if s.Wire != route.WireLocal {
				*half = min(*half+s.Price, route.MaxSum)
			}
		}
	}
	if s.goaway {
		c = route.Cost{Warm: route.MaxCost, Cold: route.MaxCost}
	}
	return c
}

func (m *model) withdraw(e route.Withdraw) error {
	if m.session(e.Session) == nil {
		return route.ErrUnknownSession
	}
	a := m.advert(e.Session, e.Advert)
	if a == nil {
		return route.ErrUnknownAdvert
	}
	m.adverts = slices.DeleteFunc(m.adverts, func(o *modelAdvert) bool { return o == a })
	if a.reason != 0 {
		return nil
	}
	if !e.Explicit {
		m.gone(a, route.GoneLost)
		return nil
	}
	m.gone(a, route.GoneWithdrawn)
	p := lastHop(a.hops)
	claimed := slices.ContainsFunc(m.adverts, func(o *modelAdvert) bool {
		return o.prefix == a.prefix && o.reason == 0 && !o.stale && lastHop(o.hops) == p
	})
	if p != 0 && !claimed && among(a.s.Wire, route.WireLite04, route.WireLite05, route.WireLite06) {
		m.unmark(a.prefix, p)
		m.started++
		m.marks = append(m.marks, &modelMark{a.prefix, p, m.now + 2*time.Second, m.started})
	}
	return nil
}

func among(w route.Wire, wires ...route.Wire) bool { return slices.Contains(wires, w) }

func lastHop(hops []route.Hop) route.Hop {
	if len(hops) == 0 {
		return 0
	}
	return hops[len(hops)-1]
}

func (m *model) unmark(prefix string, p route.Hop) {
	m.marks = slices.DeleteFunc(m.marks, func(k *modelMark) bool { return k.prefix == prefix && k.hop == p })
}

// claim is R44: a route has arrived or was updated in place.
func (m *model) claim(a *modelAdvert) { m.unmark(a.prefix, lastHop(a.hops)) }

func (m *model) marked(a *modelAdvert) bool {
	return slices.ContainsFunc(m.marks, func(k *modelMark) bool { return k.concerns(a) })
}

func (k *modelMark) concerns(a *modelAdvert) bool {
	return a.reason == 0 && a.prefix == k.prefix && len(a.hops) > 1 && slices.Contains(a.hops[1:], k.hop)
}

// settle does everything that follows from the state of the adverts.
func (m *model) settle() {
	m.marks = slices.DeleteFunc(m.marks, func(k *modelMark) bool { return !slices.ContainsFunc(m.adverts, k.concerns) })
	for _, a := range m.adverts {
		was := a.stale
		if a.stale = m.marked(a); a.stale && !was {
			m.gone(a, route.GoneStale)
		}
	}
	for _, c := range m.consumers {
		names := map[string]bool{}
		for name := range c.names {
			names[name] = true
		}
		for _, a := range m.adverts {
			if name, ok := c.presents(a); ok {
				names[name] = true
			}
		}
		for name := range names {
			m.compare(c, name)
		}
	}
}

// presents is the name under which c would hear of a.
func (c *modelConsumer) presents(a *modelAdvert) (string, bool) {
	switch {
	case under(a.prefix, c.root): // at or above the root
		return "", true
	case under(c.root, a.prefix):
		return strings.TrimPrefix(strings.TrimPrefix(a.prefix, c.root), "/"), true
	}
	return "", false
}

func under(prefix, path string) bool {
	return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/")
}

// best is R29.
func (m *model) best(c *modelConsumer, name string) *modelContent {
	var best *modelAdvert
	for _, a := range m.adverts {
		if n, ok := c.presents(a); ok && n == name && m.offered(c, a, name) && (best == nil || better(a, best)) {
			best = a
		}
	}
	if best == nil {
		return nil
	}
	return &modelContent{best.hops, best.cost}
}

func (m *model) offered(c *modelConsumer, a *modelAdvert, name string) bool {
	if a.reason != 0 || a.stale || hides(c.s.ID, c.x, a) || c.local && a.s.Source == route.SourcePeer {
		return false
	}
	if !c.s.Hidden && slices.ContainsFunc(strings.Split(name, "/"), func(s string) bool { return strings.HasPrefix(s, ".") }) {
		return false
	}
	anonymous := slices.Contains(a.hops, 0)
	if c.s.ClusterPeer && anonymous && a.s.Source == route.SourcePeer &&
		among(c.s.Wire, route.WireLite01, route.WireLite03, route.WireMoqt) {
		return false
	}
	if len(a.hops) >= m.maxHops && !among(c.s.Wire, route.WireLocal, route.WireLite01, route.WireMoqt) {
		return false
	}
	if c.through == nil && name != "" && mounted(c.s, a.prefix) {
		return false
	}
	top := a.prefix
	if len(c.root) > len(top) {
		top = c.root
	}
	return a.s.publishes(top, c.s.Subscribe, c.through)
}

// publishes reports whether s serves something at or below top that subscribe covers, by the name it has through a mount.
func (s *modelSession) publishes(top string, subscribe paths.Set, through *paths.Mount) bool {
	return !mounted(s, top) && shares(top, s.Publish, subscribe, through)
}

// mounted reports whether a session reads path elsewhere, so that it neither sees nor serves what is there.
func mounted(s *modelSession, path string) bool {
	return slices.ContainsFunc(s.Mounts, func(m paths.Mount) bool { return under(m.At, path) })
}

// hides is R23.
func hides(s route.SessionID, x route.Hop, a *modelAdvert) bool {
	return a.s.ID == s || x != 0 && (a.s.identity == x || slices.Contains(a.hops, x))
}

// better is 3.1.
func better(a, b *modelAdvert) bool {
	anon := func(x *modelAdvert) int {
		if slices.Contains(x.hops, 0) {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(len(b.prefix), len(a.prefix)),
		cmp.Compare(anon(a), anon(b)),
		cmp.Compare(a.cost.Warm, b.cost.Warm),
		cmp.Compare(a.cost.Cold, b.cost.Cold),
		cmp.Compare(len(a.hops), len(b.hops)),
		cmp.Compare(b.seq, a.seq),
	) < 0
}

// compare is the table of 4.1, with R35.
func (m *model) compare(c *modelConsumer, name string) {
	n := c.names[name]
	if n == nil {
		n = &modelName{}
		c.names[name] = n
	}
	best := m.best(c, name)
	switch {
	case best == nil && n.sent == nil:
	case n.sent == nil:
		if n.was != nil && m.worse(best, n.was) {
			return
		}
		n.was = nil
		m.tell(c, route.TellNew, name, best)
		n.sent = best
	case best == nil:
		m.tell(c, route.TellGone, name, nil)
		if m.quarantine && len(n.sent.hops) > 0 && n.sent.hops[0] != 0 {
			m.started++
			n.was, n.waitUntil, n.waitOrder = n.sent, m.now+2*time.Second, m.started
		}
		n.sent, n.due = nil, 0
	case !c.tellable():
	case c.same(n.sent, best):
		n.due, n.sent = 0, best
	case n.due == 0:
		m.started++
		n.due, n.order = m.now+300*time.Millisecond, m.started
	}
}

func (m *model) worse(a, b *modelContent) bool {
	return len(a.hops) > 0 && a.hops[0] == b.hops[0] && cmp.Or(
		cmp.Compare(a.cost.Warm, b.cost.Warm), cmp.Compare(a.cost.Cold, b.cost.Cold), cmp.Compare(len(a.hops), len(b.hops)),
	) > 0
}

// tellable: R33, R33a.
func (c *modelConsumer) tellable() bool {
	return !among(c.s.Wire, route.WireLite01, route.WireLite03) && (c.s.Wire != route.WireLite04 || c.s.ClusterPeer)
}

// same: R32.
func (c *modelConsumer) same(a, b *modelContent) bool {
	lists, warm, cold := slices.Equal(a.hops, b.hops), a.cost.Warm == b.cost.Warm, a.cost.Cold == b.cost.Cold
	switch {
	case c.s.Wire == route.WireMoqt:
		return true
	case among(c.s.Wire, route.WireLite04, route.WireLite05):
		return lists
	case c.s.Wire == route.WireMoqtCluster:
		return lists && warm
	}
	return lists && warm && cold
}

func (m *model) tell(c *modelConsumer, kind route.TellKind, name string, content *modelContent) {
	e := route.Tell{Consumer: c.id, Kind: kind, Name: name}
	if content != nil {
		e.Hops, e.Cost = content.hops, content.cost
	}
	m.effects = append(m.effects, e)
}

// expire fires everything due by now, in order.
func (m *model) expire(now time.Duration) {
	for {
		due, fire := m.next()
		if fire == nil || due > now {
			break
		}
		m.now = due
		fire()
		m.settle()
	}
	m.now = now
}

// next finds the first timer: by time, at one instant marks, waits, holds, and those in order of start.
func (m *model) next() (time.Duration, func()) {
	type key struct {
		due         time.Duration
		kind, order int
	}
	first, fire := key{due: 1 << 62}, (func())(nil)
	offer := func(k key, f func()) {
		if cmp.Or(cmp.Compare(k.due, first.due), cmp.Compare(k.kind, first.kind), cmp.Compare(k.order, first.order)) < 0 {
			first, fire = k, f
		}
	}
	for _, k := range m.marks {
		offer(key{k.due, 0, k.order}, func() { m.unmark(k.prefix, k.hop) })
	}
	for _, c := range m.consumers {
		for name, n := range c.names {
			if n.was != nil {
				offer(key{n.waitUntil, 1, n.waitOrder}, func() { n.was = nil })
			}
			if n.due != 0 {
				offer(key{n.due, 2, n.order}, func() { m.fire(c, name, n) })
			}
		}
	}
	return first.due, fire
}

func (m *model) fire(c *modelConsumer, name string, n *modelName) {
	best := m.best(c, name)
	n.due, n.sent = 0, best
	if c.s.Wire == route.WireLite04 {
		m.tell(c, route.TellGone, name, nil)
		m.tell(c, route.TellNew, name, best)
		return
	}
	m.tell(c, route.TellChange, name, best)
}

// candidates is R27 with R41; refused routes are given by sequence number.
func (m *model) candidates(path string, x route.Requester, refused map[uint64]bool) []*modelAdvert {
	var all []*modelAdvert
	for _, a := range m.adverts {
		if a.reason == 0 && !a.stale && under(a.prefix, path) && a.s.Publish.Match(path) && !mounted(a.s, path) &&
			!hides(x.Session, x.Hop, a) && !refused[a.seq] && (!x.Local || a.s.Source == route.SourceLocal) {
			all = append(all, a)
		}
	}
	deepest := 0
	for _, a := range all {
		deepest = max(deepest, len(a.prefix))
	}
	all = slices.DeleteFunc(all, func(a *modelAdvert) bool { return len(a.prefix) < deepest })
	slices.SortFunc(all, func(a, b *modelAdvert) int {
		if better(a, b) {
			return -1
		}
		return 1
	})
	// Take one after the other: the first, unless it drains and a local one below the maximum is left.
	var out []*modelAdvert
	for len(all) > 0 {
		i := 0
		if all[0].s.goaway {
			i = max(0, slices.IndexFunc(all, func(a *modelAdvert) bool {
				return a.s.Source == route.SourceLocal && a.cost != route.Cost{Warm: route.MaxCost, Cold: route.MaxCost}
			}))
		}
		out = append(out, all[i])
		all = slices.Delete(all, i, i+1)
	}
	return out
}

func (m *model) through(path string, x route.Requester) bool {
	return slices.ContainsFunc(m.adverts, func(a *modelAdvert) bool {
		return a.reason == 0 && under(a.prefix, path) && a.s.Publish.Match(path) && !mounted(a.s, path) && hides(x.Session, x.Hop, a)
	})
}

// modelPaths are all paths that the random tests can tell apart.
var modelPaths = func() []string {
	all, last := []string{""}, []string{""}
	for range 5 {
		var next []string
		for _, p := range last {
			for _, seg := range []string{"a", "b", ".h", "z"} {
				next = append(next, paths.Join(p, seg))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}()

var sharesMemo = map[string]bool{}

// shares tries all paths.
func shares(top string, p, o paths.Set, through *paths.Mount) bool {
	sees := o.Match
	key := strings.Join([]string{top, p.String(), o.String()}, " ")
	if through != nil {
		key += " " + through.At + " " + through.Target
		sees = func(path string) bool {
			return under(through.Target, path) && o.Match(through.At+strings.TrimPrefix(path, through.Target))
		}
	}
	got, ok := sharesMemo[key]
	if !ok {
		got = slices.ContainsFunc(modelPaths, func(path string) bool { return under(top, path) && p.Match(path) && sees(path) })
		sharesMemo[key] = got
	}
	return got
}
