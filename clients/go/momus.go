// Package momus gives each Go test a Kafka cluster of its own, and steers it: faults, holds, the clock, snapshots, the
// journal of requests.
//
//	func TestBilling(t *testing.T) {
//		cluster := momus.New(t, momus.ClusterOptions{})
//		refused := cluster.Faults.InjectError("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", momus.Once)
//		... the program under test, with a client on cluster.Addresses ...
//		cluster.WaitForCommitted("billing", momus.Offsets{"orders": {0: 1}}, 10*time.Second)
//	}
//
// The first call of New starts one momus for the run of the tests, which ends with it, also by kill -9. A call that is
// refused fails its test at once. When the test is over, it fails for each fault that never acted and each expectation
// that is not met, and the report of a failed test ends with the last requests. Then the cluster is gone.
package momus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

// TB is what a cluster uses of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Name() string
	Cleanup(func())
	Failed() bool
	Logf(format string, words ...any)
	Errorf(format string, words ...any)
	Fatalf(format string, words ...any)
}

// ClusterOptions say what a cluster begins with. Zero values are the defaults: one broker, in memory, the machine's time,
// no security.
type ClusterOptions struct {
	Name     string            // one that is made up
	Brokers  int               // virtual brokers
	Config   map[string]string // Kafka's own broker settings, and momus' own, as "as.version": "3.9"
	Flush    string            // memory, os or fsync: what an acknowledged record survives
	Seed     *int64            // ids repeat
	AtMs     *int64            // the moment, in Unix milliseconds, at which the clock stands
	Security string            // sasl_ssl, sasl_plaintext, ssl or mtls
	Users    map[string]string // name -> password
	Topics   map[string]int    // name -> partitions
	Load     any               // what the cluster is filled with, as docs/load.md tells: a document, or the path of a file or a folder
	Journal  int               // bytes of the last requests that are kept; 4 MB; -1: none
	Listen   string            // HOST:PORT; a free port of 127.0.0.1
}

// Cluster is one cluster of a process. A call that is refused ends the test.
type Cluster struct {
	Name             string
	ID               string   // as clients of Kafka see it
	BootstrapServers string   // one text, for clients that take HOST:PORT,HOST:PORT
	Addresses        []string // one HOST:PORT each, for clients that take a list: a client that is given BootstrapServers as one address finds no broker
	Warnings         []string // settings without effect whose names are probably wrong

	Faults       *Faults
	Journal      *Journal
	Clock        *Clock
	Brokers      *Brokers
	Users        *Users
	Acls         *Acls
	Certificates *Certificates

	process *Process
	tb      TB
	context context.Context
	path    string
	folders *folders
	gone    *sync.Once
}

// described is a cluster as the control plane has it.
type described struct {
	Name             string   `json:"name"`
	BootstrapServers string   `json:"bootstrap_servers"`
	ClusterID        string   `json:"cluster_id"`
	Brokers          int      `json:"brokers"`
	Flush            string   `json:"flush"`
	Connections      int      `json:"connections"`
	Waits            int      `json:"waits"`
	NowMs            int64    `json:"now_ms"`
	Seed             *int64   `json:"seed"`
	Warnings         []string `json:"warnings"`
}

// New makes a cluster for one test, in the process of the run, which the first call starts; MOMUS_ADDRESS names one that
// runs already.
func New(tb TB, options ClusterOptions) *Cluster {
	tb.Helper()
	process, err := ofRun()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return process.New(tb, options)
}

// Shared makes a cluster that outlives tests, such as one with data that each test forks. It panics where New would fail
// a test, and is gone when the run ends.
func Shared(options ClusterOptions) *Cluster { return New(panics{}, options) }

// New makes a cluster of this process for one test.
func (p *Process) New(tb TB, options ClusterOptions) *Cluster {
	tb.Helper()
	body := map[string]any{"journal_bytes": max(0, options.Journal)}
	if options.Journal == 0 {
		body["journal_bytes"] = 4 << 20
	}
	for name, value := range map[string]any{"name": options.Name, "flush": options.Flush, "security": options.Security, "listen": options.Listen} {
		if value != "" {
			body[name] = value
		}
	}
	if options.Brokers > 0 {
		body["brokers"] = options.Brokers
	}
	if options.Config != nil {
		body["config"] = options.Config
	}
	if options.Users != nil {
		body["users"] = options.Users
	}
	if options.Seed != nil {
		body["seed"] = *options.Seed
	}
	if options.AtMs != nil {
		body["clock_ms"] = *options.AtMs
	}
	made := described{}
	if err := p.ask(forTest(contextOf(tb), tb), "POST", "/_admin/clusters", body, &made); err != nil {
		tb.Fatalf("%v", err)
	}
	cluster := p.cluster(tb, made)
	cluster.endWith(tb)
	if options.Topics != nil {
		cluster.CreateTopics(options.Topics, TopicOptions{})
	}
	if options.Load != nil {
		cluster.Load(options.Load, "fail")
	}
	cluster.keepIfFailed()
	return cluster
}

// Default is the cluster that a process begins with, whose name is default.
func (p *Process) Default(tb TB) *Cluster {
	tb.Helper()
	found := described{}
	if err := p.ask(contextOf(tb), "GET", "/_admin/clusters/default", nil, &found); err != nil {
		tb.Fatalf("%v", err)
	}
	return p.cluster(tb, found)
}

func (p *Process) cluster(tb TB, made described) *Cluster {
	cluster := &Cluster{process: p, tb: tb, context: contextOf(tb), path: "/_admin/clusters/" + url.PathEscape(made.Name), gone: &sync.Once{}, folders: &folders{}}
	cluster.found(made)
	return cluster.wired()
}

func (c *Cluster) found(made described) {
	c.Name, c.ID, c.BootstrapServers, c.Warnings = made.Name, made.ClusterID, made.BootstrapServers, made.Warnings
	c.Addresses = strings.Split(made.BootstrapServers, ",")
}

// wired lets the parts of a cluster ask as it does.
func (c *Cluster) wired() *Cluster {
	c.Faults, c.Journal, c.Clock, c.Brokers = &Faults{c}, &Journal{c}, &Clock{c}, &Brokers{c}
	c.Users, c.Acls, c.Certificates = &Users{c}, &Acls{c}, &Certificates{c}
	return c
}

// WithContext is the same cluster, whose calls end with a context.
func (c *Cluster) WithContext(ctx context.Context) *Cluster {
	other := *c
	other.context = ctx
	return other.wired()
}

// Try makes calls of a cluster and returns the first that is refused, in the place of a failed test.
func (c *Cluster) Try(calls func(*Cluster)) (err error) {
	other := *c
	other.tb = panics{}
	defer func() {
		if said := recover(); said != nil {
			refusal, is := said.(refused)
			if !is {
				panic(said)
			}
			err = refusal
		}
	}()
	calls(other.wired())
	return nil
}

// endWith verifies the cluster when its test is over, tells its last requests if that has failed, and removes it.
func (c *Cluster) endWith(tb TB) {
	tb.Cleanup(func() {
		tb.Helper()
		c.end(tb)
	})
}

func (c *Cluster) end(tb TB) {
	tb.Helper()
	c.gone.Do(func() {
		ended := *c
		ended.context = context.Background() // that of the test is over
		if why := (&ended).unmet(); why != nil {
			for _, each := range why {
				tb.Errorf("momus: %s", each)
			}
		}
		if tb.Failed() {
			(&ended).tell(tb)
		}
		c.folders.remove()
		outcome := withOutcome(ended.context, tb.Failed())
		if err := c.process.ask(outcome, "DELETE", c.path, nil, nil); err != nil {
			tb.Errorf("%v", err)
		}
	})
}

// Remove ends a cluster before its test does; it is verified as at the end of the test.
func (c *Cluster) Remove() {
	c.tb.Helper()
	c.end(c.tb)
}

// Unmet says what the test must fail for: a sentence for each fault that never acted, and each expectation that is not met.
func (c *Cluster) Unmet() []string {
	c.tb.Helper()
	answer := struct {
		Unmet []string `json:"unmet"`
	}{}
	c.ask("GET", "/verify", nil, &answer)
	return answer.Unmet
}

func (c *Cluster) unmet() []string {
	answer := struct {
		Unmet []string `json:"unmet"`
	}{}
	if err := c.process.ask(c.context, "GET", c.path+"/verify", nil, &answer); err != nil {
		return []string{fmt.Sprintf("it is not known whether all faults have acted: %v", err)}
	}
	return answer.Unmet
}

// ask makes a call of this cluster; a refusal ends the test.
func (c *Cluster) ask(method, path string, body, answer any) {
	c.tb.Helper()
	if err := c.process.ask(c.context, method, c.path+path, body, answer); err != nil {
		c.tb.Fatalf("%v", err)
	}
}

// refused is what panics throws.
type refused string

func (r refused) Error() string { return string(r) }

// panics stands for a test where there is none.
type panics struct{}

func (panics) Helper()                        {}
func (panics) Name() string                   { return "no test" }
func (panics) Cleanup(func())                 {}
func (panics) Failed() bool                   { return false }
func (panics) Logf(string, ...any)            {}
func (panics) Errorf(format string, w ...any) { panic(refused(fmt.Sprintf(format, w...))) }
func (panics) Fatalf(format string, w ...any) { panic(refused(fmt.Sprintf(format, w...))) }

// contextOf is that of a test, where its Go has one.
func contextOf(tb TB) context.Context {
	if with, is := tb.(interface{ Context() context.Context }); is {
		return with.Context()
	}
	return context.Background()
}

// texts decodes a JSON value that may be a text, null, or {"base64": ...}.
func bytesOf(value json.RawMessage) []byte {
	text := ""
	if json.Unmarshal(value, &text) == nil {
		if string(value) == "null" {
			return nil
		}
		return []byte(text)
	}
	encoded := struct {
		Base64 []byte `json:"base64"`
	}{}
	if json.Unmarshal(value, &encoded) != nil {
		return nil
	}
	return encoded.Base64
}
