module momus.test/momus

go 1.23
