package libraries

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

type confluent struct{ servers string }

func newConfluent(addresses []string) client { return &confluent{strings.Join(addresses, ",")} }

func (c *confluent) config(more map[string]kafka.ConfigValue) *kafka.ConfigMap {
	config := kafka.ConfigMap{"bootstrap.servers": c.servers}
	for key, value := range more {
		config[key] = value
	}
	return &config
}

func (c *confluent) produce(_ context.Context, values []string) error {
	producer, err := kafka.NewProducer(c.config(nil))
	if err != nil {
		return err
	}
	defer producer.Close()
	name := topic
	for _, value := range values {
		told := make(chan kafka.Event, 1)
		message := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &name, Partition: 0}, Value: []byte(value)}
		if err := producer.Produce(message, told); err != nil {
			return err
		}
		if err := (<-told).(*kafka.Message).TopicPartition.Error; err != nil {
			return err
		}
	}
	return nil
}

func (c *confluent) bill(ctx context.Context, count int) ([]string, error) {
	consumer, err := kafka.NewConsumer(c.config(map[string]kafka.ConfigValue{
		"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": false,
	}))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	if err := consumer.Subscribe(topic, nil); err != nil {
		return nil, err
	}
	values := []string{}
	for len(values) < count && ctx.Err() == nil {
		message, err := consumer.ReadMessage(time.Second)
		if err == nil {
			values = append(values, string(message.Value))
		} else if err.(kafka.Error).Code() != kafka.ErrTimedOut {
			return values, err
		}
	}
	_, err = consumer.Commit()
	return values, err
}

func TestConfluent(t *testing.T) { billed(t, newConfluent) }
