module momus

go 1.23
