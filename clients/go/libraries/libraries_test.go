// Package libraries runs one test of a service with each of Go's other clients: what the kit says of a cluster, they find.
package libraries

import (
	"context"
	"testing"
	"time"

	"momus.test/momus"
)

const (
	topic = "orders"
	group = "billing"
	limit = time.Minute
)

// The client of one library as a service uses it.
type client interface {
	// produce sends the values and returns when each is written.
	produce(ctx context.Context, values []string) error
	// bill reads as many values as a member of the group, then commits their offsets.
	bill(ctx context.Context, count int) ([]string, error)
}

func billed(t *testing.T, made func(addresses []string) client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cluster := momus.New(t, momus.ClusterOptions{Brokers: 3, Topics: map[string]int{topic: 1}, Config: map[string]string{"group.initial.rebalance.delay.ms": "0"}})
	refused := cluster.Faults.InjectError("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", momus.Once)
	service := made(cluster.Addresses)

	if err := service.produce(ctx, []string{"coffee", "tea", "water"}); err != nil {
		t.Fatal(err)
	}
	values, err := service.bill(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}

	if len(values) != 3 || values[0] != "coffee" || values[2] != "water" {
		t.Errorf("read %q", values)
	}
	cluster.WaitForCommitted(group, momus.Offsets{topic: {0: 3}}, limit)
	if refused.Hits() != 1 {
		t.Error("the commit was not refused")
	}
	cluster.Journal.Verify(momus.AtLeast(2), momus.API("OffsetCommit"))
}
