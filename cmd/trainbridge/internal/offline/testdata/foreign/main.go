package main

import "fmt"

func main() {
	for step := 0; step < 10; step++ {
		fmt.Printf("step=%d loss=%.2f\n", step, 0.5)
	}
}
