package momus

import (
	"encoding/json"
	"time"
)

// Faults are what is to go wrong in a cluster; docs/faults.md tells of each. A fault that never acted fails the test.
type Faults struct{ c *Cluster }

// Fault is one that is set.
type Fault struct {
	Name string
	c    *Cluster
}

// State is a fault with how often it was met: Calls are the requests that matched it, Hits those on which it has acted,
// Held those that it keeps now. Words has all of it.
type State struct {
	Name  string         `json:"name"`
	Kind  string         `json:"fault"`
	Calls int            `json:"calls"`
	Hits  int            `json:"hits"`
	Held  int            `json:"held"`
	Words map[string]any `json:"-"`
}

// UnmarshalJSON keeps the fields that State has no name for in Words.
func (s *State) UnmarshalJSON(data []byte) error {
	type plain State
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	return json.Unmarshal(data, &s.Words)
}

// Kind is a kind of faults, with its fields and filters.
type Kind struct {
	Fault   string           `json:"fault"`
	About   string           `json:"about"`
	Fields  []map[string]any `json:"fields"`
	Filters []map[string]any `json:"filters"`
}

// Add sets a fault by its words, as a JSON file has them: {"fault": "inject_error", "api": "OffsetCommit", ...}.
func (f *Faults) Add(words map[string]any) *Fault {
	f.c.tb.Helper()
	made := State{}
	f.c.ask("POST", "/faults", words, &made)
	return &Fault{made.Name, f.c}
}

func (f *Faults) set(kind string, fixed map[string]any, words []Word) *Fault {
	f.c.tb.Helper()
	fixed["fault"] = kind
	return f.Add(said(words, fixed))
}

// InjectError refuses requests with an error of Kafka's, such as NOT_COORDINATOR; they take no effect.
func (f *Faults) InjectError(api, error string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("inject_error", map[string]any{"api": api, "error": error}, words)
}

// DelayOn keeps replies back so long, or requests (Before), by the cluster's clock.
func (f *Faults) DelayOn(api string, by time.Duration, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("delay_on", map[string]any{"api": api, "ms": milliseconds(by)}, words)
}

// Hold keeps replies, or requests (Before), until Release.
func (f *Faults) Hold(api string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("hold", map[string]any{"api": api}, words)
}

// MakeEvent makes something happen in the cluster at a request (Before it takes effect, or After): "rebalance",
// "expel_member", "expire_offsets", "move_coordinator", "move_leader", "restart", "abort_transaction",
// "fence_producer".
func (f *Faults) MakeEvent(event, api string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("make_event", map[string]any{"event": event, "api": api}, words)
}

// DisconnectOn closes the connection Before the request takes effect, After it, or in the Middle of the reply.
func (f *Faults) DisconnectOn(api string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("disconnect_on", map[string]any{"api": api}, words)
}

// BlackholeClient neither serves nor answers a client; its connections stay open until the fault is removed.
func (f *Faults) BlackholeClient(clientID string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("blackhole_client", map[string]any{"client_id": clientID}, words)
}

// Throttle sends each reply only when its bytes have had their time.
func (f *Faults) Throttle(bytesPerSecond int, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("throttle", map[string]any{"bytes_per_second": bytesPerSecond}, words)
}

// CorruptReply changes one byte of the reply.
func (f *Faults) CorruptReply(api string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("corrupt_reply", map[string]any{"api": api}, words)
}

// DeliverTwice lets the request take effect twice, as after a lost reply; the client gets the second reply.
func (f *Faults) DeliverTwice(api string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("deliver_twice", map[string]any{"api": api}, words)
}

// SlowDisk lets each write and each sync take so much longer.
func (f *Faults) SlowDisk(by time.Duration, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("slow_disk", map[string]any{"ms": milliseconds(by)}, words)
}

// FullDisk lets writes fail for want of room, once FreeBytes have been written.
func (f *Faults) FullDisk(words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("full_disk", map[string]any{}, words)
}

// FailWrite lets writes fail.
func (f *Faults) FailWrite(words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("fail_write", map[string]any{}, words)
}

// FailFsync lets syncs fail.
func (f *Faults) FailFsync(words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("fail_fsync", map[string]any{}, words)
}

// FailDeadLetter refuses what the broker writes to the dead-letter queue (Topic) of a share group (OfGroup).
func (f *Faults) FailDeadLetter(error string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("fail_dead_letter", map[string]any{"error": error}, words)
}

// RegistryFault lets a request of the schema registry meet an error, a delay, a hold or a disconnect.
func (f *Faults) RegistryFault(do string, words ...Word) *Fault {
	f.c.tb.Helper()
	return f.set("registry", map[string]any{"do": do}, words)
}

// List has all that are set.
func (f *Faults) List() []State {
	f.c.tb.Helper()
	found := []State{}
	f.c.ask("GET", "/faults", nil, &found)
	return found
}

// Kinds are all there are, each with its fields and filters.
func (f *Faults) Kinds() []Kind {
	f.c.tb.Helper()
	found := []Kind{}
	f.c.ask("GET", "/faults/kinds", nil, &found)

	return found
}

// Clear removes all, also those that never acted; what they keep goes on.
func (f *Faults) Clear() {
	f.c.tb.Helper()
	f.c.ask("DELETE", "/faults", nil, nil)
}

// State shows the fault as it is now.
func (f *Fault) State() State {
	f.c.tb.Helper()
	found := State{}
	f.c.ask("GET", f.path(), nil, &found)
	return found
}

// Calls are the requests that have matched it.
func (f *Fault) Calls() int { f.c.tb.Helper(); return f.State().Calls }

// Hits are those on which it has acted.
func (f *Fault) Hits() int { f.c.tb.Helper(); return f.State().Hits }

// Held are those that it keeps now.
func (f *Fault) Held() int { f.c.tb.Helper(); return f.State().Held }

// WaitUntilHeld waits until it keeps n requests or replies.
func (f *Fault) WaitUntilHeld(n int, timeout time.Duration) {
	f.c.tb.Helper()
	f.wait("held", n, timeout)
}

// WaitUntilHit waits until it has acted n times.
func (f *Fault) WaitUntilHit(n int, timeout time.Duration) {
	f.c.tb.Helper()
	f.wait("hits", n, timeout)
}

func (f *Fault) wait(what string, n int, timeout time.Duration) {
	f.c.tb.Helper()
	f.c.wait(f.path()+"/wait", map[string]any{what: n}, timeout)
}

// Release lets go the oldest that it keeps; without a number all, and replies still to come. It returns how many.
func (f *Fault) Release(most ...int) int {
	f.c.tb.Helper()
	body := map[string]any{}
	for _, each := range most {
		body["most"] = each
	}
	answer := struct {
		Released int `json:"released"`
	}{}
	f.c.ask("POST", f.path()+"/release", body, &answer)
	return answer.Released
}

// Remove takes it away; what it keeps goes on.
func (f *Fault) Remove() { f.c.tb.Helper(); f.c.ask("DELETE", f.path(), nil, nil) }

func (f *Fault) path() string { return "/faults" + segment(f.Name) }
