module momus

go 1.21
