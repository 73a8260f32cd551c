package router

// cursor reads a timestamp from left to right. Its fault is sticky: read on,
// and look at bad once at the end.
type cursor struct {
	rest []byte
	bad  bool
}

// skip takes the byte b if it is next.
func (c *cursor) skip(b byte) bool {
	if len(c.rest) == 0 || c.rest[0] != b {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// byte requires the byte b.
func (c *cursor) byte(b byte) {
	if !c.skip(b) {
		c.bad = true
	}
}

// number takes as many digits as there are and requires least…most of them;
// most is at most 9.
func (c *cursor) number(least, most int) int {
	v, n := 0, 0
	for n < len(c.rest) && isDigit(c.rest[n]) {
		if n == most {
			c.bad = true
			return 0
		}
		v = v*10 + int(c.rest[n]-'0')
		n++
	}
	if n < least {
		c.bad = true
	}
	c.rest = c.rest[n:]
	return v
}

// fraction takes at least one digit after the point; exact is false when one
// beyond the sixth is not zero.
func (c *cursor) fraction() (micro int, exact bool) {
	exact = true
	n := 0
	for ; n < len(c.rest) && isDigit(c.rest[n]); n++ {
		if n < 6 {
			micro = micro*10 + int(c.rest[n]-'0')
		} else if c.rest[n] != '0' {
			exact = false
		}
	}
	if n == 0 {
		c.bad = true
	}
	for i := n; i < 6; i++ {
		micro *= 10
	}
	c.rest = c.rest[n:]
	return micro, exact
}

// offset takes what stands between the time and the end, or BC: nothing, Z,
// ±HH, ±HH:MM or ±HH:MM:SS. It returns seconds east of UTC.
func (c *cursor) offset() int {
	if c.skip('Z') {
		return 0
	}
	sign := 1
	if c.skip('-') {
		sign = -1
	} else if !c.skip('+') {
		return 0
	}
	seconds := c.number(2, 2) * 3600
	if c.skip(':') {
		seconds += c.sixtieth() * 60
		if c.skip(':') {
			seconds += c.sixtieth()
		}
	}
	return sign * seconds
}

// sixtieth requires two digits below 60.
func (c *cursor) sixtieth() int {
	v := c.number(2, 2)
	if v > 59 {
		c.bad = true
	}
	return v
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
