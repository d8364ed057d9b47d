// Command install unpacks the binary of momus into the cache folder, where the kit finds it.
//
//	go run momus.test/momus/install momus-VERSION-linux-x86_64.tar.gz
//
// Beside the archive its checksum must be, in a file of its name with .sha256 after it.
package main

import (
	"fmt"
	"os"

	"momus.test/momus"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: install ARCHIVE.tar.gz")
		os.Exit(2)
	}
	program, err := momus.Install(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(program)
}
