// Package orders turns orders into invoices, each exactly once: franz-go, with transactions.
//
// It reads `orders` ("alice 3") and writes `invoices` ("alice 30"). The invoices and the offsets that it has read up to
// belong to one transaction, so an invoice exists if and only if its order counts as read.
package orders

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Price is that of one.
const Price = 10

// Fenced is a worker whose name another one has now.
var Fenced = errors.New("another worker has this name")

// Worker is one of the service.
type Worker struct{ session *kgo.GroupTransactSession }

// Start takes over from whoever worked under this name before: that one is fenced.
func Start(ctx context.Context, brokers []string, name string) (*Worker, error) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(brokers...),
		kgo.ClientID(name),
		kgo.TransactionalID(name),
		kgo.TransactionTimeout(time.Minute),
		kgo.ConsumerGroup("orders"),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(200*time.Millisecond),
		kgo.RequireStableFetchOffsets(),
	)
	if err != nil {
		return nil, err
	}
	if _, _, err := session.Client().ProducerID(ctx); err != nil {
		session.Close()
		return nil, err
	}
	return &Worker{session}, nil
}

// Stop leaves the group.
func (w *Worker) Stop() { w.session.Close() }

// Work works until so many orders have been invoiced. Errors: Fenced, and that of the context.
func (w *Worker) Work(ctx context.Context, wanted int) error {
	for done := 0; done < wanted; {
		fetched := w.session.PollRecords(ctx, 5)
		if err := ctx.Err(); err != nil {
			return err
		}
		if fetched.NumRecords() == 0 {
			continue
		}
		committed, err := w.step(ctx, fetched.Records())
		if isFenced(err) {
			return Fenced
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if committed {
			done += fetched.NumRecords()
		}
	}
	return nil
}

// step is one transaction: invoices, and the offsets after their orders. What was read is read again unless it commits.
func (w *Worker) step(ctx context.Context, orders []*kgo.Record) (bool, error) {
	if err := w.session.Begin(); err != nil {
		return false, err
	}
	invoices := kgo.AbortingFirstErrPromise(w.session.Client())
	for _, order := range orders {
		invoice, err := invoiceOf(string(order.Value))
		if err != nil {
			return false, err
		}
		w.session.Produce(ctx, &kgo.Record{Topic: "invoices", Value: []byte(invoice)}, invoices.Promise())
	}
	sent := invoices.Err()
	committed, err := w.session.End(ctx, sent == nil)
	return committed && err == nil, errors.Join(sent, err)
}

func invoiceOf(order string) (string, error) {
	customer, text, _ := strings.Cut(order, " ")
	count, err := strconv.Atoi(text)
	return fmt.Sprintf("%s %d", customer, count*Price), err
}

func isFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.TransactionalIDNotFound)
}
