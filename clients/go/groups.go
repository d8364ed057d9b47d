package momus

import (
	"time"
)

const longest = 20 * time.Second // of one wait; longer ones ask again

// Offsets are topic -> partition -> offset.
type Offsets map[string]map[int]int64

// Group is a group's state and the ids of its members; Dead where there is none.
type Group struct {
	Group   string   `json:"group"`
	State   string   `json:"state"`
	Type    string   `json:"type"`
	Members []string `json:"members"`
}

// Group shows a group.
func (c *Cluster) Group(group string) Group {
	c.tb.Helper()
	found := Group{}
	c.ask("GET", "/groups"+segment(group), nil, &found)
	return found
}

// Committed are the offsets that a group has committed.
func (c *Cluster) Committed(group string) Offsets {
	c.tb.Helper()
	rows := []struct {
		Topic     string `json:"topic"`
		Partition int    `json:"partition"`
		Offset    int64  `json:"offset"`
	}{}
	c.ask("GET", "/groups"+segment(group)+"/offsets", nil, &rows)
	found := Offsets{}
	for _, each := range rows {
		if found[each.Topic] == nil {
			found[each.Topic] = map[int]int64{}
		}
		found[each.Topic][each.Partition] = each.Offset
	}
	return found
}

// waited is what waits answer.
type waited struct {
	Met     bool     `json:"met"`
	Why     string   `json:"why"`
	Members []string `json:"members"`
}

// wait asks until what is waited for is there; the test fails where it is not in time.
func (c *Cluster) wait(path string, body map[string]any, timeout time.Duration) waited {
	c.tb.Helper()
	for end := time.Now().Add(timeout); ; {
		answer := waited{}
		body["timeout_ms"] = milliseconds(min(time.Until(end), longest))
		c.ask("POST", path+"?check=false", body, &answer)
		if answer.Met {
			return answer
		}
		if !time.Now().Before(end) {
			c.tb.Fatalf("momus: %s, after %s", answer.Why, timeout)
		}
	}
}

// WaitForGroup waits until a group has a state ("stable", "empty", "dead", ...) and so many members (-1: any), and
// returns their ids.
func (c *Cluster) WaitForGroup(group, state string, members int, timeout time.Duration) []string {
	c.tb.Helper()
	body := map[string]any{"state": state}
	if members >= 0 {
		body["members"] = members
	}
	return c.wait("/groups"+segment(group)+"/wait", body, timeout).Members
}

// WaitForCommitted waits until a group has committed these offsets, or later ones.
func (c *Cluster) WaitForCommitted(group string, offsets Offsets, timeout time.Duration) {
	c.tb.Helper()
	rows := []map[string]any{}
	for topic, partitions := range offsets {
		for partition, offset := range partitions {
			rows = append(rows, map[string]any{"topic": topic, "partition": partition, "offset": offset})
		}
	}
	c.wait("/groups"+segment(group)+"/wait-for-offsets", map[string]any{"offsets": rows}, timeout)
}

// WaitForLag waits until a group is at most so many records after the ends of its partitions, of all topics or of some.
func (c *Cluster) WaitForLag(group string, lag int, timeout time.Duration, topic ...string) {
	c.tb.Helper()
	body := map[string]any{"lag": lag}
	for _, each := range topic {
		body["topic"] = each
	}
	c.wait("/groups"+segment(group)+"/wait-for-lag", body, timeout)
}

// Rebalance lets the members of a classic group join again; others get the next epoch. It returns the ids of the members.
func (c *Cluster) Rebalance(group string) []string {
	c.tb.Helper()
	found := Group{}
	c.ask("POST", "/groups"+segment(group)+"/rebalance", map[string]any{}, &found)
	return found.Members
}

// ExpelMember removes a member, by its id or instance id: its next request meets UNKNOWN_MEMBER_ID.
func (c *Cluster) ExpelMember(group, member string) {
	c.tb.Helper()
	c.ask("POST", "/groups"+segment(group)+"/expel", map[string]any{"member": member}, nil)
}

// DeleteGroup deletes a group without members, with its offsets.
func (c *Cluster) DeleteGroup(group string) {
	c.tb.Helper()
	c.ask("DELETE", "/groups"+segment(group), nil, nil)
}
