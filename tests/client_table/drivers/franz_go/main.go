// The driver of franz-go; lines.py says what it speaks.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic   = "orders"
	request = 10 * time.Second
	whole   = 30 * time.Second
)

type driver struct {
	client *kgo.Client
	last   *kgo.Record
}

func main() {
	made, _ := debug.ReadBuildInfo()
	for _, each := range made.Deps {
		if each.Path == "github.com/twmb/franz-go" {
			fmt.Printf("client\tfranz-go\t%s\n", strings.TrimPrefix(each.Version, "v"))
		}
	}
	d := &driver{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer, err := d.act(strings.Split(lines.Text(), "\t"))
		if err == nil {
			fmt.Println("ok" + answer)
			continue
		}
		name := fmt.Sprintf("%T", err)
		var told *kerr.Error
		if errors.As(err, &told) {
			name = told.Message
		}
		fmt.Printf("error\t%s\t%s\n", name, strings.Join(strings.Fields(err.Error()), " "))
	}
}

func (d *driver) open(address string, more ...kgo.Opt) (err error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(address), kgo.ClientID("driver"), kgo.RequestTimeoutOverhead(request), kgo.RetryTimeout(whole),
	}
	d.client, err = kgo.NewClient(append(opts, more...)...)
	return err
}

func (d *driver) act(words []string) (string, error) {
	ctx := context.Background()
	switch words[0] {
	case "producer":
		return "", d.open(words[1], kgo.DefaultProduceTopic(topic), kgo.RecordDeliveryTimeout(whole))
	case "consumer":
		return "", d.open(words[1], kgo.ConsumerGroup(words[2]), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	case "produce":
		return "", d.client.ProduceSync(ctx, kgo.StringRecord(words[1])).FirstErr()
	case "consume":
		for {
			fetches := d.client.PollRecords(ctx, 1)
			for _, each := range fetches.Records() {
				d.last = each
				return fmt.Sprintf("\t%d\t%s", each.Offset, each.Value), nil
			}
			if err := fetches.Err(); err != nil {
				return "", err
			}
		}
	case "commit":
		return "", d.client.CommitRecords(ctx, d.last)
	case "close":
		d.client.Close()
		return "", nil
	}
	return "", errors.New("no such command")
}
