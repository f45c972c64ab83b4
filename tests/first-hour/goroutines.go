// Goroutines whose work differs in length.
package main

import (
	"fmt"
	"sync"
)

const items = 32

func work(id int, out []uint32) {
	x := uint32(id*977 + 5)
	turns := 1000 + id*200
	for i := 0; i < turns; i++ {
		x = x*1664525 + x>>16
	}
	out[id] = x
}

func main() {
	var all sync.WaitGroup
	out := make([]uint32, items)
	for i := 0; i < items; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			work(i, out)
		}(i)
	}
	all.Wait()
	sum := uint32(0)
	for _, v := range out {
		sum ^= v
	}
	fmt.Println(sum)
}
