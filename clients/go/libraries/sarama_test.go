package libraries

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct {
	brokers []string
	config  *sarama.Config
}

func newSarama(addresses []string) client {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Rebalance.Timeout = 5 * time.Second
	return &saramaClient{addresses, config}
}

func (c *saramaClient) produce(_ context.Context, values []string) error {
	producer, err := sarama.NewSyncProducer(c.brokers, c.config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, value := range values {
		if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)}); err != nil {
			return err
		}
	}
	return nil
}

func (c *saramaClient) bill(ctx context.Context, count int) ([]string, error) {
	member, err := sarama.NewConsumerGroup(c.brokers, group, c.config)
	if err != nil {
		return nil, err
	}
	defer member.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader := &saramaReader{count: count, done: cancel}
	err = member.Consume(ctx, []string{topic}, reader)
	return reader.values, err
}

type saramaReader struct {
	count  int
	values []string
	done   func()
}

func (*saramaReader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaReader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *saramaReader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		r.values = append(r.values, string(message.Value))
		session.MarkMessage(message, "")
		if len(r.values) == r.count {
			r.done() // the session commits as it ends, and again if it is refused; session.Commit would do so once
			return nil
		}
	}
	return nil
}

func TestSarama(t *testing.T) { billed(t, newSarama) }
