module example.test/calc

go 1.19
