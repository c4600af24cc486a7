package tqdm

// smoothing is the weight of the last move in a bar's speed (tqdm/std.py, __init__). Weights of earlier moves fall by 1-smoothing each.
const smoothing = 0.3

// minInterval is the time, s, that counts may advance before a bar computes its speed anew (tqdm/std.py, __init__, mininterval): a refresh draws new counts
// beside the old speed.
const minInterval = 0.1

// coarse is the relative rounding of a speed from which two equal speeds in a row may be chance.
const coarse = 2e-4

// Clock finds the time of a count, s since the bar was first drawn, more exactly than the bar's whole seconds: from the speeds of consecutive drawings, within
// the second shown by the bar. The zero value is ready; fields are exported to be saved.
//
// A bar shows its recent speed, a mean of moves with exponentially falling weights (tqdm/std.py, EMA): the last move is the difference between two means. With
// smoothing 0, as in Lightning, a bar shows the mean since its beginning. Bars do not show their smoothing; a hypothesis that contradicts the seconds is given
// up.
type Clock struct {
	Total, Elapsed float64 // as drawn last
	Seen           float64 // the count drawn last
	N, At          float64 // count and time, s, at the last computation of the speed: tqdm draws new counts beside old speeds, too
	Per            float64 // the speed drawn last, s per count
	First          float64 // the count at the bar's beginning: 0, or the steps before a resume
	FromN, FromAt  float64 // count and time, s, of the mark

	Moves, Took, Off    float64 // sums of all moves with the weights of the recent speed: of counts, of s, and of the possible error of s
	Sum, SumOff         float64 // time of all moves by the recent speed, s, and its possible error
	NotMean, NotRecent  bool    // the drawn speed contradicted the bar's seconds as a mean since the beginning; as a recent speed
	Begun, NotFromStart bool    // there was a drawing; the first drawing was in the middle of the bar
}

// Draw moves the clock by a drawing of the bar, and reports whether a bar begins: the first one, or one with another total, or a smaller count or time. mean:
// the bar is known to show the mean since its beginning. A new count with the old speed moves the clock only if the speed may have been computed anew and come
// out equal, or the bar has no speed.
func (c *Clock) Draw(b *Bar, mean bool) (begins bool) {
	if !c.Begun || b.Total != c.Total || b.Done < c.Seen || b.Elapsed < c.Elapsed {
		c.begin(b)
		return true
	}
	c.Elapsed = b.Elapsed
	n := b.Done - c.N
	equalByChance := n*b.Per >= minInterval && b.Err > coarse*b.Per
	if n > 0 && (b.Per != c.Per || b.Per == 0 || equalByChance) {
		c.move(b, mean)
	}
	c.Seen = b.Done
	return false
}

// begin starts the clock with the first drawing of a bar, and sets the mark: at the bar's beginning if the drawing has no count, or explains all its time, or
// is of a resumed job; else at the drawing, somewhere in the drawing's second (+ 0.5 s).
func (c *Clock) begin(b *Bar) {
	*c = Clock{Total: b.Total, Elapsed: b.Elapsed, Seen: b.Done, N: b.Done, Per: b.Per, Begun: true}
	switch all, off := b.Done*b.Per, b.Done*b.Err; {
	case b.Done == 0:
	case b.Per > 0 && all+off >= b.Elapsed && all-off <= b.Elapsed+1: // counts times speed are the elapsed time: the speed is of everything so far
		c.At = within(all, b.Elapsed, b.Elapsed+1)
		c.Moves, c.Took, c.Off = smoothing*b.Done, smoothing*all, smoothing*off // as after a first move of all counts
		c.Sum, c.SumOff = all, off
	case b.Per == 0 && b.Elapsed == 0: // a resumed job
		c.First, c.FromN = b.Done, b.Done
	default:
		c.NotFromStart = true
		c.At = b.Elapsed + 0.5
		c.FromN, c.FromAt = b.Done, c.At
		c.Moves, c.Took, c.Off = 1, b.Per, b.Err // as after many moves of one count
		c.NotMean = b.Per > 0
	}
}

// move moves the clock by a drawing with a new count and a new speed: to the time of the count, within the second that the bar shows. Without a speed, the
// steps take as long as those before.
func (c *Clock) move(b *Bar, mean bool) {
	n := b.Done - c.N
	at := c.At
	switch {
	case b.Per > 0:
		at = c.bySpeed(b, n, mean)
	case c.N > c.First:
		at += n * c.At / (c.N - c.First)
	}
	at = min(c.since(b, n, at, max(b.Elapsed, c.At)), b.Elapsed+1)
	if c.FromN > c.N { // the mark was between two speeds
		c.FromAt = c.At + (at-c.At)*(c.FromN-c.N)/n
	}
	c.N, c.At, c.Per = b.Done, at, b.Per
}

// since returns the time at of the bar's count, moved to at least the given one. A time before that by less than the rounding of the drawn speed explains, and
// by less than the move itself, has come by many small errors: the clock catches up over the next moves, instead of within a single step that would look slow.
func (c *Clock) since(b *Bar, n, at, least float64) float64 {
	if late := least - at; late > 0 && late <= min(2*(b.Done-c.First)*b.Err, n*b.Per, 1) {
		return max(at, c.At) + min(late, n*b.Per/50)
	}
	return max(at, least)
}

// bySpeed returns the time of the bar's count, s since the bar's beginning, by the drawn speed; n is the move, in counts. Two hypotheses are followed: the
// speed is the mean since the beginning (overall), or recent, with the last move found as the difference of two weighted sums (recent). The answer is of the
// mean where the bar is known to show the mean, or its seconds contradict a recent speed, and do not contradict the mean.
func (c *Clock) bySpeed(b *Bar, n float64, mean bool) float64 {
	done := b.Done - c.First
	all, allOff := done*b.Per, done*b.Err // the time of all counts by the hypothesis of the mean, and its possible error
	// The time of the last count (At) is known within a second.
	if all+allOff < max(b.Elapsed, c.At-1) || all-allOff > b.Elapsed+1 {
		c.NotMean = true
	}
	if all < minInterval { // the bar's first speed covers all moves: both hypotheses agree
		c.Moves, c.Took, c.Off = smoothing*done, smoothing*all, smoothing*allOff
		c.Sum, c.SumOff = all, allOff
		return all
	}
	// The hypothesis of the recent speed: the speed is Took / Moves, sums over all moves. In the new sums the old ones count (1-smoothing) times, and the last
	// move smoothing times, so the difference is the time of the last move.
	took, off := c.Took, c.Off
	c.Moves = smoothing*n + (1-smoothing)*c.Moves
	c.Took, c.Off = c.Moves*b.Per, c.Moves*b.Err
	last := max((c.Took-(1-smoothing)*took)/smoothing, 0)
	c.Sum += last
	c.SumOff += (c.Off + (1-smoothing)*off) / smoothing
	if !c.NotFromStart && (c.Sum+c.SumOff < b.Elapsed || c.Sum-c.SumOff > b.Elapsed+1) {
		c.NotRecent = true
	}
	usual := c.At + n*b.Per                                      // the move at the drawn speed
	overall := c.since(b, n, min(usual, all+allOff), all-allOff) // drawn speeds are rounded: usual, as far as the mean permits
	if !c.NotMean && (mean || c.NotRecent) {
		return overall
	}
	recent := c.At + last
	// A closed bar shows the mean, whatever the speed before (tqdm/std.py, close).
	if b.Done == b.Total && all+allOff >= b.Elapsed && all-allOff <= b.Elapsed+1 && abs(overall-usual) < abs(recent-usual) {
		return overall
	}
	return recent
}

// Since returns the time of the steps since the mark, s, and their number. guessed: the known time is of fewer than half of the steps, or the bar has whole
// seconds alone, too coarse below 10 s.
func (c *Clock) Since() (took, steps float64, guessed bool) {
	steps = c.Seen - c.FromN
	if !(steps > 0) {
		return 0, 0, true
	}
	more := c.Seen - c.N // their speed was not drawn yet
	at := c.At
	if more > 0 && c.Per > 0 {
		at = within(at+more*c.Per, max(c.Elapsed, c.At), c.Elapsed+1)
	}
	return max(at-c.FromAt, 0), steps, 2*more > steps || c.Per == 0 && c.Elapsed < 10
}

// Mark sets the mark at the count drawn last: the caller has made a record of the steps before.
func (c *Clock) Mark() {
	took, steps, _ := c.Since()
	if steps > 0 {
		c.FromN, c.FromAt = c.Seen, c.FromAt+took
	}
}

// within returns v, or the nearer of the bounds.
func within(v, least, most float64) float64 { return max(min(v, most), least) }

// abs returns the absolute value of v.
func abs(v float64) float64 { return max(v, -v) }
