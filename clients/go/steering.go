package momus

import (
	"fmt"
	"time"
)

// Clock is that of a cluster. It moves forward only.
type Clock struct{ c *Cluster }

type clock struct {
	NowMs   int64 `json:"now_ms"`
	Stands  bool  `json:"stands"`
	Settled *bool `json:"settled"`
}

func (k *Clock) show() clock {
	k.c.tb.Helper()
	found := clock{}
	k.c.ask("GET", "/clock", nil, &found)
	return found
}

func (k *Clock) move(word string, value any) {
	k.c.tb.Helper()
	answer := clock{}
	k.c.ask("POST", "/clock", map[string]any{word: value}, &answer)
	if answer.Settled != nil && !*answer.Settled {
		k.c.tb.Fatalf("momus: the clock has moved, but not all that became due was done in time")
	}
}

// Now is the cluster's time.
func (k *Clock) Now() time.Time { k.c.tb.Helper(); return time.UnixMilli(k.show().NowMs) }

// Stands says whether it has been told to stand still.
func (k *Clock) Stands() bool { k.c.tb.Helper(); return k.show().Stands }

// Advance lets time pass: sessions, transactions and retention expire as they would. It returns when what became due is
// done.
func (k *Clock) Advance(by time.Duration) { k.c.tb.Helper(); k.move("advance_ms", by.Milliseconds()) }

// Set goes to a moment that has not passed, and stands there.
func (k *Clock) Set(at time.Time) { k.c.tb.Helper(); k.move("set", at.UnixMilli()) }

// Freeze stands still at the present moment.
func (k *Clock) Freeze() { k.c.tb.Helper(); k.move("freeze", true) }

// Resume runs on from here.
func (k *Clock) Resume() { k.c.tb.Helper(); k.move("resume", true) }

// PassWaits moves no clock: Fetches that wait have waited so much longer.
func (k *Clock) PassWaits(by time.Duration) {
	k.c.tb.Helper()
	k.move("pass_waits_ms", by.Milliseconds())
}

// Brokers are the virtual brokers of a cluster, counted from 1.
type Brokers struct{ c *Cluster }

// Broker is one of them. Listeners are name -> HOST:PORT.
type Broker struct {
	ID        int               `json:"id"`
	Up        bool              `json:"up"`
	Lags      bool              `json:"lags"`
	Paused    bool              `json:"paused"`
	Listeners map[string]string `json:"listeners"`
}

// List has all of them, running or not.
func (b *Brokers) List() []Broker {
	b.c.tb.Helper()
	found := []Broker{}
	b.c.ask("GET", "/brokers", nil, &found)
	return found
}

func (b *Brokers) tell(id int, verb string) {
	b.c.tb.Helper()
	b.c.ask("POST", fmt.Sprintf("/brokers/%d/%s", id, verb), nil, nil)
}

// Stop closes a broker's listeners and connections; the others lead its partitions.
func (b *Brokers) Stop(id int) { b.c.tb.Helper(); b.tell(id, "stop") }

// Start lets it listen again, on the same ports, and lead its partitions again.
func (b *Brokers) Start(id int) { b.c.tb.Helper(); b.tell(id, "start") }

// Lag lets a broker fetch nothing of what others lead.
func (b *Brokers) Lag(id int) { b.c.tb.Helper(); b.tell(id, "lag") }

// Release lets a broker that lags catch up.
func (b *Brokers) Release(id int) { b.c.tb.Helper(); b.tell(id, "release") }

// Pause lets a broker read and answer nothing, with its connections open.
func (b *Brokers) Pause(id int) { b.c.tb.Helper(); b.tell(id, "pause") }

// Resume lets a broker that is paused go on.
func (b *Brokers) Resume(id int) { b.c.tb.Helper(); b.tell(id, "resume") }

// Reset drops all data, connections, faults and moves of the clock; ports, settings and expectations stay.
func (c *Cluster) Reset() { c.tb.Helper(); c.beginAnew("/reset", map[string]any{}) }

func (c *Cluster) beginAnew(path string, body map[string]any) {
	c.tb.Helper()
	now := described{}
	c.ask("POST", path, body, &now)
	c.found(now)
}

// Connections are how many clients are connected.
func (c *Cluster) Connections() int {
	c.tb.Helper()
	now := described{}
	c.ask("GET", "", nil, &now)
	return now.Connections
}

// Metrics are those of this cluster, as Prometheus reads them.
func (c *Cluster) Metrics() string {
	c.tb.Helper()
	found := ""
	c.ask("GET", "/metrics", nil, &found)
	return found
}

// Registry is the URL of the cluster's schema registry, which is served from the first time that it is asked for.
func (c *Cluster) Registry() string {
	c.tb.Helper()
	found := struct {
		URL string `json:"url"`
	}{}
	c.ask("POST", "/registry", map[string]any{}, &found)
	return found.URL
}

// HasRegistry says whether it is served.
func (c *Cluster) HasRegistry() bool {
	c.tb.Helper()
	found := struct {
		URL string `json:"url"`
	}{}
	c.ask("GET", "/registry", nil, &found)
	return found.URL != ""
}
