// The driver of sarama; lines.py says what it speaks.
//
// A member commits inside ConsumeClaim, as its users do: the loop there goes on to the next record at the next command.
// A commit of its session returns nothing: what it says on its channel of errors within 200 ms counts as the answer, and
// else `untold` says that it may be kept or not.
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

	"github.com/IBM/sarama"
)

const (
	topic   = "orders"
	request = 10 * time.Second
)

// A record that ConsumeClaim holds until it is told what to do: true is to commit it.
type delivery struct {
	message *sarama.ConsumerMessage
	commits chan bool
	done    chan struct{}
}

type driver struct {
	producer   sarama.SyncProducer
	group      sarama.ConsumerGroup
	end        context.CancelFunc
	deliveries chan *delivery
	errors     chan error
	last       *delivery
}

func main() {
	made, _ := debug.ReadBuildInfo()
	for _, each := range made.Deps {
		if each.Path == "github.com/IBM/sarama" {
			fmt.Printf("client\tsarama\t%s\n", strings.TrimPrefix(each.Version, "v"))
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
		var code sarama.KError
		if errors.As(err, &code) {
			name = fmt.Sprintf("KError %d", int16(code))
		}
		fmt.Printf("error\t%s\t%s\n", name, strings.Join(strings.Fields(err.Error()), " "))
	}
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.ClientID = "driver"
	config.Net.DialTimeout, config.Net.ReadTimeout, config.Net.WriteTimeout = request, request, request
	config.Producer.Return.Successes = true
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	return config
}

func (d *driver) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (d *driver) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (d *driver) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		held := &delivery{message, make(chan bool), make(chan struct{})}
		select {
		case d.deliveries <- held:
		case <-session.Context().Done():
			return nil
		}
		if <-held.commits {
			session.MarkMessage(message, "")
			session.Commit()
		}
		close(held.done)
	}
	return nil
}

func (d *driver) join(address, name string) (err error) {
	d.deliveries, d.errors = make(chan *delivery), make(chan error, 100)
	if d.group, err = sarama.NewConsumerGroup([]string{address}, name, settings()); err != nil {
		return err
	}
	var ctx context.Context
	ctx, d.end = context.WithCancel(context.Background())
	group, told := d.group, d.errors
	go func() {
		for err := range group.Errors() {
			told <- err
		}
	}()
	go func() { // as sarama's own example: join again for as long as the program runs
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{topic}, d); err != nil && ctx.Err() == nil {
				told <- err
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return nil
}

func (d *driver) act(words []string) (answer string, err error) {
	switch words[0] {
	case "producer":
		d.producer, err = sarama.NewSyncProducer([]string{words[1]}, settings())
		return "", err
	case "consumer":
		return "", d.join(words[1], words[2])
	case "produce":
		_, _, err = d.producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(words[1])})
		return "", err
	case "consume":
		d.goOn(false)
		select {
		case d.last = <-d.deliveries:
			return fmt.Sprintf("\t%d\t%s", d.last.message.Offset, d.last.message.Value), nil
		case err = <-d.errors:
			return "", err
		}
	case "commit":
		d.goOn(true)
		select {
		case err = <-d.errors:
			return "", err
		case <-time.After(200 * time.Millisecond):
			return "\tuntold", nil
		}
	case "close":
		return "", d.close()
	}
	return "", errors.New("no such command")
}

// goOn ends the work on the record that was read last.
func (d *driver) goOn(commits bool) {
	if d.last == nil {
		return
	}
	d.last.commits <- commits
	<-d.last.done
	d.last = nil
}

func (d *driver) close() error {
	d.goOn(false)
	if d.producer != nil {
		defer func() { d.producer = nil }()
		return d.producer.Close()
	}
	if d.group != nil {
		d.end()
		defer func() { d.group = nil }()
		return d.group.Close()
	}
	return nil
}
