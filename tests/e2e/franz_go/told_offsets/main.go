// Writes the numbers from 0 on with franz-go's idempotent producer, and prints how many it was told wrong offsets of.
//
//	told_offsets SERVERS TOPIC COUNT
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.DefaultProduceTopic(os.Args[2]),
		kgo.ProducerBatchMaxBytes(5000),
		kgo.ProducerLinger(time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 5 * time.Millisecond }),
		kgo.RecordRetries(1<<30),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		panic(err)
	}
	var wrong, failed atomic.Int64
	for number := range count {
		record := &kgo.Record{Value: fmt.Appendf(nil, "%0100d", number)}
		client.Produce(context.Background(), record, func(told *kgo.Record, err error) {
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed.Add(1)
			} else if told.Offset != int64(number) {
				wrong.Add(1)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		panic(err)
	}
	client.Close()
	fmt.Println("failed", failed.Load(), "wrong", wrong.Load())
}
