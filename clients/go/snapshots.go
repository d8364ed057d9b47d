package momus

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Snapshot is the state of a cluster at a moment: what a restart would find. It is gone with its cluster.
type Snapshot struct {
	Name string
	c    *Cluster
}

// Snapshot keeps the cluster as it is; without a name it gets one.
func (c *Cluster) Snapshot(name ...string) *Snapshot {
	c.tb.Helper()
	body := map[string]any{}
	for _, each := range name {
		body["name"] = each
	}
	made := described{}
	c.ask("POST", "/snapshots", body, &made)
	return &Snapshot{made.Name, c}
}

// Snapshots are all there are, oldest first.
func (c *Cluster) Snapshots() []*Snapshot {
	c.tb.Helper()
	rows := []described{}
	c.ask("GET", "/snapshots", nil, &rows)
	found := make([]*Snapshot, len(rows))
	for i, each := range rows {
		found[i] = &Snapshot{each.Name, c}
	}
	return found
}

// Remove gives it up; what was made from it stays.
func (s *Snapshot) Remove() {
	s.c.tb.Helper()
	s.c.ask("DELETE", "/snapshots"+segment(s.Name), nil, nil)
}

// Restore goes back to it, on the same ports; connections are cut, faults and the journal begin again.
func (s *Snapshot) Restore() {
	s.c.tb.Helper()
	s.c.beginAnew("/restore", map[string]any{"snapshot": s.Name})
}

// Fork is another cluster for a test that goes on from the snapshot; neither sees the other.
func (s *Snapshot) Fork(tb TB) *Cluster {
	tb.Helper()
	return s.c.fork(tb, map[string]any{"snapshot": s.Name})
}

// Fork is another cluster for a test that goes on from this one as it is now.
func (c *Cluster) Fork(tb TB) *Cluster {
	tb.Helper()
	return c.fork(tb, map[string]any{})
}

func (c *Cluster) fork(tb TB, body map[string]any) *Cluster {
	tb.Helper()
	made := described{}
	if err := c.process.ask(forTest(contextOf(tb), tb), "POST", c.path+"/fork", body, &made); err != nil {
		tb.Fatalf("%v", err)
	}
	fork := c.process.cluster(tb, made)
	fork.endWith(tb)
	fork.keepIfFailed()
	return fork
}

// Side is a Cluster as it is now, or a Snapshot.
type Side interface{ side() map[string]any }

func (c *Cluster) side() map[string]any { return map[string]any{"cluster": c.Name} }
func (s *Snapshot) side() map[string]any {
	return map[string]any{"cluster": s.c.Name, "snapshot": s.Name}
}

// Difference is what is different between two sides; rows have a value where a side has one.
type Difference struct {
	Different bool             `json:"different"`
	Topics    []map[string]any `json:"topics"`
	Settings  []map[string]any `json:"settings"`
	Records   []map[string]any `json:"records"`
	Offsets   []map[string]any `json:"offsets"`
	Members   []map[string]any `json:"members"`
}

func (d Difference) String() string {
	lines := []string{}
	for what, rows := range map[string][]map[string]any{"topic": d.Topics, "setting": d.Settings, "records": d.Records, "offset": d.Offsets, "members": d.Members} {
		for _, each := range rows {
			text, _ := json.Marshal(each)
			lines = append(lines, fmt.Sprintf("%s %s", what, text))
		}
	}
	return strings.Join(lines, "\n")
}

// Diff compares this cluster with another side.
func (c *Cluster) Diff(from Side) Difference {
	c.tb.Helper()
	found := Difference{}
	body := map[string]any{"first": from.side(), "second": c.side()}
	if err := c.process.ask(c.context, "POST", "/_admin/diff", body, &found); err != nil {
		c.tb.Fatalf("%v", err)
	}
	return found
}
