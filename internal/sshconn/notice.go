package sshconn

// noticesMax bounds the notices that are kept until OnNotice.
const noticesMax = 4

func (c *Conn) notice(name string) {
	c.mu.Lock()
	f := c.onNotice
	if f == nil && len(c.notices) < noticesMax {
		c.notices = append(c.notices, name)
	}
	c.mu.Unlock()
	if f != nil {
		f(name)
	}
}

// OnNotice calls f with the name of each global request of the server that wants no reply, and at
// once with the first few that have come already. f must not block.
func (c *Conn) OnNotice(f func(name string)) {
	c.mu.Lock()
	c.onNotice = f
	before := c.notices
	c.notices = nil
	c.mu.Unlock()
	for _, name := range before {
		f(name)
	}
}
