package route_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

// TestScenarios runs testdata/*.txt, the worked examples. The language:
//
//	table [hop=1] [max-hops=32] [quarantine]      starts an empty table, with one session per line:
//	  NAME WIRE [hop=n] [ok=n] [price=n] [peer] [mesh] [publish=a/**,b] [subscribe=...] [hidden]
//
// hop is what the peer declares in SETUP, ok its ANNOUNCE_OK id (hop, if not given), price the resolved price
// of the link, peer the source, mesh that it is a cluster peer. A session without a hop gets the assigned
// identity 1000+i and the stamp 2000+i, i counting from 1 in the order of sessions.
//
//	run                      lines of TIME [NAME VERB ...], the time in milliseconds; output is what happens:
//	  + PREFIX [hops] cost   announce; cost is warm or warm/cold, hops as on the wire
//	  ~ PREFIX [hops] cost   update
//	  - PREFIX               explicit end;  fin PREFIX: the stream ends
//	  goaway, down, grant publish=... subscribe=...
//	  listen [PREFIX] [exclude=n] [local]; unlisten [PREFIX]
//	  ? PATH                 where a request goes;  ?? PATH: all candidates in order
//	  why PATH               all that could serve it, ranked, with the deciding step
//	  names [ROOT]           what HTTP lists
//	  through PATH           whether it needs a front of its own
//
// Output lines are "TIME NAME +|~|- NAME [hops] cost" for what a consumer is told ("" is the empty name), and
// "TIME NAME lost|withdrawn|stale|detached|declined PREFIX" for what becomes of an advertisement.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		var s *scenario
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "table":
				s = newScenario(t, d)
				return ""
			case "run":
				return s.run(d)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

var epoch = time.UnixMilli(1_000_000)

type scenario struct {
	t         *testing.T
	table     *route.Table
	sessions  map[string]*scenarioSession
	names     map[route.SessionID]string
	consumers map[route.ConsumerID]string
	out       strings.Builder
}

type scenarioSession struct {
	info    route.SessionInfo
	ok      route.Hop
	adverts map[string]route.AdvertID
	next    route.AdvertID
}

func newScenario(t *testing.T, d *datadriven.TestData) *scenario {
	t.Helper()
	cfg := route.Config{Hop: 1}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "hop":
			cfg.Hop = route.Hop(number(t, arg.Vals[0]))
		case "max-hops":
			cfg.MaxHops = int(number(t, arg.Vals[0]))
		case "quarantine":
			cfg.Quarantine = true
		default:
			d.Fatalf(t, "unknown argument %q", arg.Key)
		}
	}
	s := &scenario{
		t: t, table: route.New(cfg), sessions: map[string]*scenarioSession{},
		names: map[route.SessionID]string{}, consumers: map[route.ConsumerID]string{},
	}
	for line := range strings.Lines(d.Input) {
		if fields := strings.Fields(line); len(fields) > 0 {
			s.addSession(fields)
		}
	}
	return s
}

var wireNames = map[string]route.Wire{}

func init() {
	for w := route.WireLocal; w <= route.WireMoqtCluster; w++ {
		wireNames[w.String()] = w
	}
}

func (s *scenario) addSession(fields []string) {
	id := route.SessionID(len(s.sessions) + 1)
	wire, ok := wireNames[fields[1]]
	if !ok {
		s.t.Fatalf("unknown wire %q", fields[1])
	}
	one := &scenarioSession{adverts: map[string]route.AdvertID{}, info: route.SessionInfo{
		ID: id, Wire: wire, Assigned: 1000 + route.Hop(id), Stamp: 2000 + route.Hop(id), Price: 1,
		Publish: paths.All, Subscribe: paths.All,
	}}
	declaresOK := false
	for _, f := range fields[2:] {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "hop":
			one.info.Hop = route.Hop(number(s.t, value))
		case "ok":
			one.ok, declaresOK = route.Hop(number(s.t, value)), true
		case "price":
			one.info.Price = number(s.t, value)
		case "peer":
			one.info.Source = route.SourcePeer
		case "mesh":
			one.info.Source, one.info.ClusterPeer = route.SourcePeer, true
		case "publish":
			one.info.Publish = set(s.t, value)
		case "subscribe":
			one.info.Subscribe = set(s.t, value)
		case "hidden":
			one.info.Hidden = true
		default:
			s.t.Fatalf("unknown option %q", f)
		}
	}
	if !declaresOK {
		one.ok = one.info.Hop
	}
	s.sessions[fields[0]], s.names[id] = one, fields[0]
	if _, err := s.table.Apply(epoch, route.SessionUp{SessionInfo: one.info}); err != nil {
		s.t.Fatal(err)
	}
}

// run executes lines. Before each one the timers due by its time are fired at their own time.
func (s *scenario) run(d *datadriven.TestData) string {
	s.out.Reset()
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		ms := number(s.t, fields[0])
		now := epoch.Add(time.Duration(ms) * time.Millisecond)
		for {
			due, ok := s.table.Deadline()
			if !ok || due.After(now) {
				break
			}
			s.print(due, s.table.Expire(due))
		}
		if len(fields) > 1 {
			s.do(now, fields[1], fields[2], fields[3:])
		}
	}
	return s.out.String()
}

func (s *scenario) do(now time.Time, name, verb string, args []string) {
	one := s.sessions[name]
	if one == nil {
		s.t.Fatalf("unknown session %q", name)
	}
	if s.query(now, name, verb, strings.Join(args, " ")) {
		return
	}
	effects, err := s.table.Apply(now, s.event(one, verb, args))
	s.print(now, effects)
	if err != nil {
		s.printf(now, "%s error: %v", name, err)
	}
}

func (s *scenario) event(one *scenarioSession, verb string, args []string) route.Event {
	id, prefix := one.info.ID, ""
	if len(args) > 0 && !strings.Contains(args[0], "=") && args[0] != "local" {
		prefix = strings.Trim(args[0], `"`)
	}
	switch verb {
	case "+":
		one.next++
		advert := one.next
		if old, ok := one.adverts[prefix]; ok && one.info.Wire == route.WireLite05 {
			advert = old // the wire repeats the path
		} else if !ok {
			one.adverts[prefix] = advert
		}
		return route.Announce{Session: id, Advert: advert, Prefix: prefix, Advertised: s.advertised(one, args[1:])}
	case "~":
		return route.Update{Session: id, Advert: one.adverts[prefix], Advertised: s.advertised(one, args[1:])}
	case "-", "fin":
		advert := one.adverts[prefix]
		delete(one.adverts, prefix)
		return route.Withdraw{Session: id, Advert: advert, Explicit: verb == "-"}
	case "goaway":
		return route.Goaway{Session: id}
	case "down":
		return route.SessionDown{ID: id}
	case "grant":
		e := route.SessionGrant{ID: id, Publish: one.info.Publish, Subscribe: one.info.Subscribe}
		for _, arg := range args {
			if value, ok := strings.CutPrefix(arg, "publish="); ok {
				e.Publish = set(s.t, value)
			} else if value, ok := strings.CutPrefix(arg, "subscribe="); ok {
				e.Subscribe = set(s.t, value)
			}
		}
		return e
	case "listen":
		return s.listen(one, prefix, args)
	case "unlisten":
		for c, name := range s.consumers {
			if name == consumerName(s.names[id], prefix) {
				return route.Unlisten{Consumer: c}
			}
		}
	}
	s.t.Fatalf("unknown verb %q %q", verb, args)
	return nil
}

func (s *scenario) listen(one *scenarioSession, prefix string, args []string) route.Event {
	id := route.ConsumerID(len(s.consumers) + 1)
	s.consumers[id] = consumerName(s.names[one.info.ID], prefix)
	e := route.Listen{Consumer: id, Session: one.info.ID, Root: prefix}
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "exclude="); ok {
			e.Exclude = route.Hop(number(s.t, value))
		} else if arg == "local" {
			e.Local = true
		}
	}
	return e
}

func consumerName(session, prefix string) string {
	if prefix == "" {
		return session
	}
	return session + ":" + prefix
}

// advertised reads "[9 2] 4/9".
func (s *scenario) advertised(one *scenarioSession, args []string) route.Advertised {
	text := strings.Join(args, " ")
	list, cost, _ := strings.Cut(strings.TrimPrefix(text, "["), "]")
	ad := route.Advertised{Sender: one.ok}
	for f := range strings.FieldsSeq(list) {
		if from, to, ok := strings.Cut(f, ".."); ok {
			for h := number(s.t, from); h <= number(s.t, to); h++ {
				ad.Hops = append(ad.Hops, route.Hop(h))
			}
			continue
		}
		ad.Hops = append(ad.Hops, route.Hop(number(s.t, f)))
	}
	if cost = strings.TrimSpace(cost); cost != "" {
		warm, cold, ok := strings.Cut(cost, "/")
		if !ok {
			cold = warm
		}
		ad.Cost = route.Cost{Warm: number(s.t, warm), Cold: number(s.t, cold)}
	}
	return ad
}

// query answers the verbs that change nothing.
func (s *scenario) query(now time.Time, name, verb, path string) bool {
	x := s.table.Requester(s.sessions[name].info.ID)
	path = strings.Trim(path, `"`)
	switch verb {
	case "?":
		r, ok := s.table.Lookup(path, x)
		if !ok {
			s.printf(now, "%s ? %s: unroutable", name, path)
			break
		}
		s.printf(now, "%s ? %s: %s", name, path, s.route(r))
	case "??":
		for i, r := range s.table.Candidates(path, x, nil) {
			s.printf(now, "%s ?? %d. %s", name, i+1, s.route(r))
		}
	case "why":
		for _, r := range s.table.Explain(path, x) {
			text := s.route(r.Route)
			if r.Step != route.StepNone {
				text += " behind by " + r.Step.String()
			}
			s.printf(now, "%s", text)
		}
	case "names":
		info := s.sessions[name].info
		v := route.View{Root: path, Subscribe: info.Subscribe, Hidden: info.Hidden, Requester: x}
		s.printf(now, "%s names %q", name, s.table.Names(v))
		v.Local = true
		s.printf(now, "%s local names %q", name, s.table.Names(v))
	case "through":
		s.printf(now, "%s through %s: %v", name, path, s.table.Through(path, x))
	default:
		return false
	}
	return true
}

func (s *scenario) route(r route.Route) string {
	text := fmt.Sprintf("%s %s %s via %d %s", s.names[r.Session], quoted(r.Prefix), content(r.Hops, r.Cost), r.Via, r.Source)
	if r.Goaway {
		text += " draining"
	}
	return text
}

func (s *scenario) print(now time.Time, effects []route.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case route.Tell:
			text := fmt.Sprintf("%s %c %s", s.consumers[e.Consumer], "+~-"[e.Kind], quoted(e.Name))
			if e.Kind != route.TellGone {
				text += " " + content(e.Hops, e.Cost)
			}
			s.printf(now, "%s", text)
		case route.RouteGone:
			how := [...]string{"lost", "withdrawn", "stale", "detached"}[e.How]
			s.printf(now, "%s %s %s", s.names[e.Session], how, quoted(e.Prefix))
		case route.Declined:
			s.printf(now, "%s declined %s: %s", s.names[e.Session], quoted(e.Prefix), e.Reason)
		}
	}
}

func (s *scenario) printf(now time.Time, format string, args ...any) {
	fmt.Fprintf(&s.out, "%d %s\n", now.Sub(epoch).Milliseconds(), fmt.Sprintf(format, args...))
}

func quoted(name string) string {
	if name == "" {
		return `""`
	}
	return name
}

// content prints "[9 2] 2", and "2/9" where warm and cold differ.
func content(hops []route.Hop, c route.Cost) string {
	list := strings.Trim(fmt.Sprint(hops), "[]")
	cost := price(c.Warm)
	if c.Warm != c.Cold {
		cost += "/" + price(c.Cold)
	}
	return fmt.Sprintf("[%s] %s", list, cost)
}

func price(v uint64) string {
	switch v {
	case route.MaxCost:
		return "max"
	case route.MaxSum:
		return "max-1"
	}
	return strconv.FormatUint(v, 10)
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	base, minus, _ := strings.Cut(text, "-")
	var v uint64
	var err error
	if base == "max" {
		v = route.MaxCost
	} else if v, err = strconv.ParseUint(base, 10, 64); err != nil {
		t.Fatal(err)
	}
	if minus != "" {
		n, err := strconv.ParseUint(minus, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		v -= n
	}
	return v
}

func set(t *testing.T, text string) paths.Set {
	t.Helper()
	s, err := paths.ParseSet(slices.DeleteFunc(strings.Split(text, ","), func(p string) bool { return p == "-" })...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
