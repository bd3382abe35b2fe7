package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// metric is one family of the relay: what it is called, and its rows at a moment.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	rows       func(m *Metrics, row func(value float64, labels ...string))
}

// tierMetric has one row per tier, content metric one per tier and role.
func tierMetric(name, help string, value func(*TierMetrics) uint64) metric {
	return metric{name, help, prometheus.CounterValue, []string{"tier"}, func(m *Metrics, row func(float64, ...string)) {
		for i := range m.Tiers {
			row(float64(value(&m.Tiers[i])), m.Tiers[i].Tier)
		}
	}}
}

func contentMetric(name, help string, value func(*ContentMetrics) uint64) metric {
	return metric{name, help, prometheus.CounterValue, []string{"tier", "role"}, func(m *Metrics, row func(float64, ...string)) {
		for i := range m.Tiers {
			t := &m.Tiers[i]
			row(float64(value(&t.Publisher)), t.Tier, string(RolePublisher))
			row(float64(value(&t.Subscriber)), t.Tier, string(RoleSubscriber))
		}
	}}
}

func controlMetric(name, help string, value func(*TierMetrics) map[ControlClass]uint64) metric {
	return metric{name, help, prometheus.CounterValue, []string{"tier", "class"}, func(m *Metrics, row func(float64, ...string)) {
		for i := range m.Tiers {
			for class, n := range value(&m.Tiers[i]) {
				row(float64(n), m.Tiers[i].Tier, string(class))
			}
		}
	}}
}

func single(kind prometheus.ValueType, name, help string, value func(*Metrics) float64) metric {
	return metric{name, help, kind, nil, func(m *Metrics, row func(float64, ...string)) { row(value(m)) }}
}

func ownGauge(name, help string, value func(*OwnMetrics) int64) metric {
	return single(prometheus.GaugeValue, "moqmesh_"+name, help, func(m *Metrics) float64 { return float64(value(&m.Own)) })
}

func ownCounter(name, help string, value func(*OwnMetrics) uint64) metric {
	return single(prometheus.CounterValue, "moqmesh_"+name+"_total", help, func(m *Metrics) float64 { return float64(value(&m.Own)) })
}

// relayMetrics have the names that dashboards for other relays know.
var relayMetrics = []metric{
	contentMetric("moq_relay_bytes_total", "Payload bytes of frames and datagrams.", func(c *ContentMetrics) uint64 { return c.Bytes }),
	contentMetric("moq_relay_frames_total", "Frames.", func(c *ContentMetrics) uint64 { return c.Frames }),
	contentMetric("moq_relay_groups_total", "Groups.", func(c *ContentMetrics) uint64 { return c.Groups }),
	contentMetric("moq_relay_datagrams_total", "Datagrams.", func(c *ContentMetrics) uint64 { return c.Datagrams }),
	contentMetric("moq_relay_stale_bytes_total", "Payload bytes that came or went too late.", func(c *ContentMetrics) uint64 { return c.StaleBytes }),
	contentMetric("moq_relay_stale_frames_total", "Frames that came or went too late.", func(c *ContentMetrics) uint64 { return c.StaleFrames }),
	contentMetric("moq_relay_stale_groups_total", "Groups that were cut because they were too old.", func(c *ContentMetrics) uint64 { return c.StaleGroups }),
	contentMetric("moq_relay_stale_datagrams_total", "Datagrams that came too late (subscriber), or that 64 newer ones replaced before they could be sent (publisher).", func(c *ContentMetrics) uint64 { return c.StaleDatagrams }),
	contentMetric("moq_relay_fetches_total", "Fetches of single groups.", func(c *ContentMetrics) uint64 { return c.Fetches }),
	contentMetric("moq_relay_announces_started_total", "Broadcasts announced.", func(c *ContentMetrics) uint64 { return c.AnnouncesStarted }),
	contentMetric("moq_relay_announces_ended_total", "Announcements ended.", func(c *ContentMetrics) uint64 { return c.AnnouncesEnded }),
	contentMetric("moq_relay_subscriptions_opened_total", "Subscriptions to tracks opened.", func(c *ContentMetrics) uint64 { return c.SubscriptionsOpened }),
	contentMetric("moq_relay_subscriptions_closed_total", "Subscriptions to tracks closed.", func(c *ContentMetrics) uint64 { return c.SubscriptionsClosed }),
	contentMetric("moq_relay_viewers_opened_total", "Sessions that began to watch a broadcast.", func(c *ContentMetrics) uint64 { return c.ViewersOpened }),
	contentMetric("moq_relay_viewers_closed_total", "Sessions that ceased to watch a broadcast.", func(c *ContentMetrics) uint64 { return c.ViewersClosed }),
	tierMetric("moq_relay_sessions_opened_total", "Sessions opened.", func(t *TierMetrics) uint64 { return t.SessionsOpened }),
	tierMetric("moq_relay_sessions_closed_total", "Sessions closed.", func(t *TierMetrics) uint64 { return t.SessionsClosed }),
	controlMetric("moq_relay_control_tx_bytes_total", "Bytes of control messages sent.", func(t *TierMetrics) map[ControlClass]uint64 { return t.ControlSent }),
	controlMetric("moq_relay_control_rx_bytes_total", "Bytes of control messages received.", func(t *TierMetrics) map[ControlClass]uint64 { return t.ControlReceived }),
	{
		"moq_relay_accept_failures_total", "Connections that a TCP listener could not accept.", prometheus.CounterValue,
		[]string{"listener", "class"},
		func(m *Metrics, row func(float64, ...string)) {
			for _, a := range m.Accepts {
				for class, n := range a.Failures {
					row(float64(n), a.Listener, class)
				}
			}
		},
	},
	{
		"moq_relay_accept_stalled_seconds", "For how long a TCP listener has not been able to accept; 0 = it works.", prometheus.GaugeValue,
		[]string{"listener"},
		func(m *Metrics, row func(float64, ...string)) {
			for _, a := range m.Accepts {
				row(a.Stalled, a.Listener)
			}
		},
	},
	single(prometheus.GaugeValue, "moq_relay_draining_sessions", "Sessions that have been told to go and are still there.",
		func(m *Metrics) float64 { return float64(m.DrainingSessions) }),
}

// ownMetrics are only ours.
// peerStates are always all there, so that queries of one do not come back empty.
var peerStates = []string{"connected", "dialing", "draining", "waiting"}

var ownMetrics = []metric{
	ownGauge("sessions", "Live sessions, accepted and dialed.", func(o *OwnMetrics) int64 { return int64(o.Sessions) }),
	ownGauge("routes", "Routes known.", func(o *OwnMetrics) int64 { return int64(o.Routes) }),
	ownGauge("holds_pending", "Changes of routes that wait to be announced.", func(o *OwnMetrics) int64 { return int64(o.HoldsPending) }),
	ownGauge("upstream_subscriptions", "Subscriptions of this relay at publishers and peers.", func(o *OwnMetrics) int64 { return int64(o.UpstreamSubscriptions) }),
	ownCounter("failovers", "Tracks that went on from another source.", func(o *OwnMetrics) uint64 { return o.Failovers }),
	ownCounter("refusals", "Sources that refused a track, or ended it with an error.", func(o *OwnMetrics) uint64 { return o.Refusals }),
	ownCounter("hedges", "Second sources asked because the first had fallen silent.", func(o *OwnMetrics) uint64 { return o.Hedges }),
	ownCounter("hedges_won", "Second sources that delivered a frame first.", func(o *OwnMetrics) uint64 { return o.HedgesWon }),
	ownCounter("hedges_needless", "Second sources given up before they delivered a frame first.", func(o *OwnMetrics) uint64 { return o.HedgesNeedless }),
	ownCounter("hedges_refused", "Second sources that refused the track or were lost.", func(o *OwnMetrics) uint64 { return o.HedgesRefused }),
	ownGauge("tracks", "Tracks known.", func(o *OwnMetrics) int64 { return int64(o.Tracks) }),
	ownGauge("readers", "Subscriptions that are served.", func(o *OwnMetrics) int64 { return int64(o.Readers) }),
	ownCounter("duplicate_frames", "Frames received again and dropped.", func(o *OwnMetrics) uint64 { return o.DuplicateFrames }),
	ownGauge("cache_bytes", "Memory held by groups.", func(o *OwnMetrics) int64 { return o.CacheBytes }),
	ownGauge("cache_capacity_bytes", "Most memory for groups; 0 = no limit.", func(o *OwnMetrics) int64 { return o.CacheCapacity }),
	ownGauge("cache_groups", "Groups held.", func(o *OwnMetrics) int64 { return int64(o.CacheGroups) }),
	ownCounter("cache_evictions", "Groups dropped for lack of memory or of readers.", func(o *OwnMetrics) uint64 { return o.CacheEvictions }),
	single(prometheus.GaugeValue, "moqmesh_lateness_seconds", "Nine in ten goroutines waited less for a core, a moment ago; or how long all of the relay did.", func(m *Metrics) float64 { return m.Own.Lateness.Seconds() }),
	ownGauge("overloaded", "1 while the relay is too late to take in new clients (limits.lateness).", func(o *OwnMetrics) int64 { return number(o.Overloaded) }),
	ownGauge("memory_used_bytes", "Memory that the relay cannot do without, as of the last collection.", func(o *OwnMetrics) int64 { return o.MemoryUsed }),
	ownGauge("memory_limit_bytes", "What limits.memory allows; 0 = no limit.", func(o *OwnMetrics) int64 { return o.MemoryLimit }),
	ownGauge("memory_short", "1 while the relay has no memory for new clients (limits.memory).", func(o *OwnMetrics) int64 { return number(o.MemoryShort) }),
	ownCounter("joins_delayed", "Connections that waited for their turn because the relay was late.", func(o *OwnMetrics) uint64 { return o.JoinsDelayed }),
	ownCounter("groups_shed", "Groups that readers skipped because the relay was late.", func(o *OwnMetrics) uint64 { return o.GroupsShed }),
	ownCounter("dials", "Attempts to reach a peer.", func(o *OwnMetrics) uint64 { return o.Dials }),
	ownCounter("dial_failures", "Attempts to reach a peer that led to no session.", func(o *OwnMetrics) uint64 { return o.DialFailures }),
	{
		"moqmesh_peers", "Peers that are dialed, by the state of the dial.", prometheus.GaugeValue,
		[]string{"state"},
		func(m *Metrics, row func(float64, ...string)) {
			for _, state := range peerStates {
				row(float64(m.Own.Peers[state]), state)
			}
		},
	},
	{
		"moqmesh_auth_answers_total", "Answers about sessions: to their connect, and when they were asked about again.", prometheus.CounterValue,
		[]string{"event", "outcome"},
		func(m *Metrics, row func(float64, ...string)) {
			for outcome, n := range m.Own.Auth.Connects {
				row(float64(n), "connect", outcome)
			}
			for outcome, n := range m.Own.Auth.Refreshes {
				row(float64(n), "revalidate", outcome)
			}
		},
	},
	{
		"moqmesh_auth_ended_total", "Sessions whose permission ended before they did, by reason.", prometheus.CounterValue,
		[]string{"reason"},
		func(m *Metrics, row func(float64, ...string)) {
			for reason, n := range m.Own.Auth.Ended {
				row(float64(n), reason)
			}
		},
	},
	ownCounter("auth_recovered", "Sessions let in during an outage, because they had been granted a moment before.", func(o *OwnMetrics) uint64 { return o.Auth.Recovered }),
	ownGauge("auth_stale_sessions", "Sessions that keep a grant which could not be renewed.", func(o *OwnMetrics) int64 { return o.Auth.Stale }),
	{
		"moqmesh_limited_total", "What a limit turned away or, of announce_rate, slowed, by limit.", prometheus.CounterValue,
		[]string{"limit"},
		func(m *Metrics, row func(float64, ...string)) {
			for limit, n := range m.Own.Limited {
				row(float64(n), limit)
			}
		},
	},
	ownGauge("peer_list_failing", "1 while the list of cluster.connect_api cannot be used.", func(o *OwnMetrics) int64 { return number(o.PeerListFailing) }),
}

// number is 1 for what holds.
func number(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}

// collector reads the relay's counters when metrics are asked for.
type collector struct {
	state   State
	metrics []metric
	descs   []*prometheus.Desc
}

func newCollector(s State) *collector {
	c := &collector{state: s, metrics: slices.Concat(relayMetrics, ownMetrics)}
	for _, m := range c.metrics {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	now := c.state.Metrics()
	for i, m := range c.metrics {
		m.rows(&now, func(value float64, labels ...string) {
			for j, l := range labels {
				labels[j] = strings.ToValidUTF8(l, "�")
			}
			out <- prometheus.MustNewConstMetric(c.descs[i], m.kind, value, labels...)
		})
	}
}

// metricsHandler writes the metrics as text. The usual handler leaves out families without rows, while dashboards want
// HELP and TYPE of all.
type metricsHandler struct {
	registry *prometheus.Registry
	families []metric
}

func newMetrics(s State) http.Handler {
	c := newCollector(s)
	r := prometheus.NewRegistry()
	r.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &metricsHandler{registry: r, families: c.metrics}
}

func (h *metricsHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	found, err := h.registry.Gather()
	if err != nil && len(found) == 0 {
		answer(w, http.StatusInternalServerError, textPlain, "internal error")
		return
	}
	for _, m := range h.families {
		at, ok := slices.BinarySearchFunc(found, m.name, func(f *dto.MetricFamily, name string) int {
			return strings.Compare(f.GetName(), name)
		})
		if !ok {
			found = slices.Insert(found, at, &dto.MetricFamily{Name: &m.name, Help: &m.help, Type: familyType(m.kind)})
		}
	}
	var text bytes.Buffer
	for _, f := range found {
		if len(f.GetMetric()) == 0 {
			fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", f.GetName(), f.GetHelp(), f.GetName(), strings.ToLower(f.GetType().String()))
		} else if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			answer(w, http.StatusInternalServerError, textPlain, "internal error")
			return
		}
	}
	answer(w, http.StatusOK, "text/plain; version=0.0.4", text.String())
}

func familyType(kind prometheus.ValueType) *dto.MetricType {
	if kind == prometheus.CounterValue {
		return dto.MetricType_COUNTER.Enum()
	}
	return dto.MetricType_GAUGE.Enum()
}
