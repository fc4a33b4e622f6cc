module github.com/flexsteer/flexsteer/sim

go 1.26
