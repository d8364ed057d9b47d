package libraries

import (
	"context"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

type kafkaGo struct{ brokers []string }

func newKafkaGo(addresses []string) client { return &kafkaGo{addresses} }

func (c *kafkaGo) produce(ctx context.Context, values []string) error {
	writer := &kafka.Writer{Addr: kafka.TCP(c.brokers...), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond}
	defer writer.Close()
	messages := []kafka.Message{}
	for _, value := range values {
		messages = append(messages, kafka.Message{Value: []byte(value)})
	}
	return writer.WriteMessages(ctx, messages...)
}

func (c *kafkaGo) bill(ctx context.Context, count int) ([]string, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: c.brokers, GroupID: group, Topic: topic, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
	})
	defer reader.Close()
	values, last := []string{}, kafka.Message{}
	for len(values) < count {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			return values, err
		}
		values, last = append(values, string(message.Value)), message
	}
	return values, reader.CommitMessages(ctx, last)
}

func TestKafkaGo(t *testing.T) { billed(t, newKafkaGo) }
