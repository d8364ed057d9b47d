package orders

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"momus.test/momus"
)

const count = 20

var (
	steps    = []string{"AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"}
	expected = func() []string {
		all := []string{}
		for number := range count {
			all = append(all, fmt.Sprintf("customer-%d %d", number, number*Price))
		}
		slices.Sort(all)
		return all
	}()
	// A cluster with 20 orders, made once and forked for each test. As of 3.9, a client asks for each step of a transaction.
	template = sync.OnceValue(func() *momus.Cluster {
		seed := int64(2026)
		cluster := momus.Shared(momus.ClusterOptions{
			Seed:   &seed,
			Config: map[string]string{"as.version": "3.9", "transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"},
			Topics: map[string]int{"orders": 2, "invoices": 1},
		})
		for number := range count {
			order := fmt.Sprintf("customer-%d %d", number, number)
			cluster.Produce("orders", momus.Message{Value: order, Partition: momus.Partition(number % 2)})
		}
		return cluster
	})
)

func worker(t *testing.T, cluster *momus.Cluster) *Worker {
	t.Helper()
	made, err := Start(context.Background(), cluster.Addresses, "orders-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Stop)
	return made
}

func work(t *testing.T, of *Worker, wanted int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := of.Work(ctx, wanted); err != nil {
		t.Fatal(err)
	}
}

// invoices are what a careful reader sees.
func invoices(cluster *momus.Cluster, least int) []string {
	found := []string{}
	for _, each := range cluster.Consume("invoices", least, momus.Reading{Committed: true}) {
		found = append(found, string(each.Value))
	}
	slices.Sort(found)
	return found
}

func check(t *testing.T, cluster *momus.Cluster) {
	t.Helper()
	if found := invoices(cluster, count); !slices.Equal(found, expected) {
		t.Fatal(found)
	}
}

func TestEachOrderHasItsInvoice(t *testing.T) {
	cluster := template().Fork(t)
	work(t, worker(t, cluster), count)
	check(t, cluster)
	if committed := cluster.Committed("orders"); !maps.Equal(committed["orders"], map[int]int64{0: 10, 1: 10}) {
		t.Fatal(committed)
	}
}

func TestConnectionThatBreaksAtAnyStepCostsNoInvoiceAndAddsNone(t *testing.T) {
	for _, api := range steps {
		for name, when := range map[string]momus.Word{"before": momus.Before, "after": momus.After} {
			t.Run(api+" "+name, func(t *testing.T) {
				cluster := template().Fork(t)
				service := worker(t, cluster)
				fault := cluster.Faults.DisconnectOn(api, when, momus.Once, momus.ClientID("orders-1"))
				work(t, service, count)
				if hits := fault.Hits(); hits != 1 {
					t.Fatal(hits)
				}
				check(t, cluster)
			})
		}
	}
}

func TestCoordinatorThatMovesAtAnyStepCostsNoInvoiceAndAddsNone(t *testing.T) {
	for _, api := range steps {
		t.Run(api, func(t *testing.T) {
			cluster := template().Fork(t)
			service := worker(t, cluster)
			refusal := "NOT_COORDINATOR"
			if api == "Produce" {
				refusal = "NOT_LEADER_OR_FOLLOWER"
			}
			cluster.Faults.InjectError(api, refusal, momus.Once)
			work(t, service, count)
			check(t, cluster)
		})
	}
}

// atTheEnd runs a worker until it is to end its first transaction, and calls what happens then. The worker dies there.
func atTheEnd(t *testing.T, cluster *momus.Cluster, then func()) {
	t.Helper()
	service := worker(t, cluster)
	held := cluster.Faults.Hold("EndTxn", momus.Before, momus.Once)
	ctx, die := context.WithCancel(context.Background())
	working := make(chan error)
	go func() { working <- service.Work(ctx, count) }()
	held.WaitUntilHeld(1, time.Minute)
	then()
	die()
	<-working
	held.Remove()
}

func TestWorkerThatDiesBetweenOffsetsAndCommitLeavesNoTrace(t *testing.T) {
	cluster := template().Fork(t)
	atTheEnd(t, cluster, func() {
		if found := invoices(cluster, 0); len(found) > 0 {
			t.Error(found)
		}
		if committed := cluster.Committed("orders"); len(committed) > 0 {
			t.Error(committed)
		}
	})
}

func TestZombieIsFencedAndToldWhy(t *testing.T) {
	cluster := template().Fork(t)
	zombie := worker(t, cluster)
	work(t, zombie, 5)
	successor := worker(t, cluster)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := zombie.Work(ctx, count); !errors.Is(err, Fenced) {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile(`^the producer sent id \d+, epoch 0; transactional id orders-1 is \w+, with producer id \d+, epoch 1$`)
	if whys := cluster.Journal.Whys(); !slices.ContainsFunc(whys, sentence.MatchString) {
		t.Fatal(strings.Join(whys, "\n"))
	}
	zombie.Stop()
	work(t, successor, count-len(invoices(cluster, 0)))
	check(t, cluster)
}

func TestTransactionOfAWorkerThatFellSilentIsAbortedAfterAMinute(t *testing.T) {
	cluster := template().Fork(t)
	atTheEnd(t, cluster, func() {
		cluster.Produce("invoices", "by hand 1")
		if found := invoices(cluster, 0); len(found) > 0 { // after the open transaction
			t.Error(found)
		}
		cluster.Clock.Advance(61 * time.Second)
		if found := invoices(cluster, 1); !slices.Equal(found, []string{"by hand 1"}) {
			t.Error(found)
		}
	})
}
