package momus

import (
	"net/url"
	"strconv"
	"strings"
)

// Journal is the last requests of a cluster, each with its reply.
type Journal struct{ c *Cluster }

// Limits say how often requests are to come: exactly Times, or AtLeast and AtMost.
type Limits struct{ Times, AtLeast, AtMost *int }

// Exactly is a limit.
func Exactly(times int) Limits { return Limits{Times: &times} }

// AtLeast is a limit.
func AtLeast(times int) Limits { return Limits{AtLeast: &times} }

// AtMost is a limit.
func AtMost(times int) Limits { least := 0; return Limits{AtLeast: &least, AtMost: &times} }

// Between is a limit.
func Between(least, most int) Limits { return Limits{AtLeast: &least, AtMost: &most} }

// Entry is a request with its reply.
type Entry struct {
	Number    int64          `json:"number"`
	AtMs      int64          `json:"at_ms"`
	LatencyMs *float64       `json:"latency_ms"` // nil: there is no reply yet
	API       string         `json:"api"`
	Version   int            `json:"version"`
	ClientID  string         `json:"client_id"`
	Software  string         `json:"software"`
	Principal string         `json:"principal"`
	Errors    []string       `json:"errors"`
	Why       string         `json:"why"`   // it was refused
	Fault     string         `json:"fault"` // that has acted on it
	Broker    int            `json:"broker"`
	Request   map[string]any `json:"request"`  // nil: it was too large to be kept
	Response  map[string]any `json:"response"` // nil: as well, or there is none
}

func (l Limits) body(filters []Word) map[string]any {
	body := map[string]any{"filters": said(filters, map[string]any{})}
	for name, limit := range map[string]*int{"times": l.Times, "at_least": l.AtLeast, "at_most": l.AtMost} {
		if limit != nil {
			body[name] = *limit
		}
	}
	return body
}

// Entries are the requests that fit, oldest first: the newest 10,000.
func (j *Journal) Entries(filters ...Word) []Entry {
	j.c.tb.Helper()
	query := url.Values{"limit": {strconv.Itoa(mostRecords)}}
	for name, value := range said(filters, map[string]any{}) {
		text, is := value.(string)
		if !is {
			j.c.tb.Fatalf("momus: %s is no filter of the journal", name)
		}
		query.Set(name, text)
	}
	answer := struct {
		Entries []Entry `json:"entries"`
	}{}
	j.c.ask("GET", "/journal?"+query.Encode(), nil, &answer)
	return answer.Entries
}

// Whys are why requests that fit were refused, oldest first.
func (j *Journal) Whys(filters ...Word) []string {
	j.c.tb.Helper()
	found := []string{}
	for _, each := range j.Entries(filters...) {
		if each.Why != "" {
			found = append(found, each.Why)
		}
	}
	return found
}

// Verify fails the test, with what came near, unless such requests came as often as the limits say. It returns how many.
func (j *Journal) Verify(limits Limits, filters ...Word) int {
	j.c.tb.Helper()
	answer := struct {
		Met   bool   `json:"met"`
		Count int    `json:"count"`
		Why   string `json:"why"`
	}{}
	j.c.ask("POST", "/journal/verify?check=false", limits.body(filters), &answer)
	if !answer.Met {
		j.c.tb.Fatalf("momus: %s", answer.Why)
	}
	return answer.Count
}

// Expect verifies it when the test is over, over all resets and restores.
func (j *Journal) Expect(limits Limits, filters ...Word) {
	j.c.tb.Helper()
	j.c.ask("POST", "/journal/expect", limits.body(filters), nil)
}

// ExpectNothing takes back what was expected.
func (j *Journal) ExpectNothing() { j.c.tb.Helper(); j.c.ask("DELETE", "/journal/expect", nil, nil) }

// Last are the last requests, a line each.
func (j *Journal) Last(n int) string {
	j.c.tb.Helper()
	answer := struct {
		Lines []string `json:"lines"`
	}{}
	j.c.ask("GET", "/journal/last?n="+strconv.Itoa(n), nil, &answer)
	return strings.Join(answer.Lines, "\n")
}

// Keep keeps so many bytes of the last requests; 0: none.
func (j *Journal) Keep(bytes int) {
	j.c.tb.Helper()
	j.c.ask("POST", "/journal", map[string]any{"bytes": bytes}, nil)
}

// Clear drops what is kept.
func (j *Journal) Clear() { j.c.tb.Helper(); j.c.ask("DELETE", "/journal", nil, nil) }
