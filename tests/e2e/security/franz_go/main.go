// Lists the topics of a cluster with the options that momus has written beside it. Prints "ok" or the error.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	momus "momus.example/client/options"
)

func main() {
	options, err := momus.Options()
	if err == nil {
		var client *kgo.Client
		if client, err = kgo.NewClient(append(options, kgo.RequestRetries(0))...); err == nil {
			defer client.Close()
			ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
			defer stop()
			_, err = kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok")
}
