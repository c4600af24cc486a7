package train

import "slices"

// window holds durations in order, to keep perf_monitor's median over the later half of all steps cheap: a list of sorted pieces.
type window struct {
	pieces [][]int64
	n      int
}

const pieceSize = 1024

func (w *window) find(v int64) int {
	i, _ := slices.BinarySearchFunc(w.pieces, v, func(p []int64, v int64) int {
		if p[len(p)-1] < v {
			return -1
		}
		return 1
	})
	return min(i, len(w.pieces)-1)
}

func (w *window) add(v int64) {
	w.n++
	if len(w.pieces) == 0 {
		w.pieces = [][]int64{{v}}
		return
	}
	i := w.find(v)
	p := w.pieces[i]
	at, _ := slices.BinarySearch(p, v)
	p = slices.Insert(p, at, v)
	w.pieces[i] = p
	if len(p) > pieceSize {
		w.pieces[i] = slices.Clone(p[:len(p)/2])
		w.pieces = slices.Insert(w.pieces, i+1, slices.Clone(p[len(p)/2:]))
	}
}

// remove removes an added value.
func (w *window) remove(v int64) {
	w.n--
	i := w.find(v)
	at, _ := slices.BinarySearch(w.pieces[i], v)
	w.pieces[i] = slices.Delete(w.pieces[i], at, at+1)
	if len(w.pieces[i]) == 0 {
		w.pieces = slices.Delete(w.pieces, i, i+1)
	}
}

// median is the median of Python's statistics module: the mean of the middle two.
func (w *window) median() float64 {
	return float64(w.at((w.n-1)/2)+w.at(w.n/2)) / 2
}

func (w *window) at(i int) int64 {
	for _, p := range w.pieces {
		if i < len(p) {
			return p[i]
		}
		i -= len(p)
	}
	return 0
}
