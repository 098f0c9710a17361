package sandbox

// Leave makes the end of ctx end only the waiting of Execute and Input, as it does with Wait: the
// command goes on, and the call returns ctx's error and a Result in State Running with what the
// command has printed. It is for calls whose ctx is that of a client who may go away, and come back
// with Wait. Timeout kills the command all the same.
func Leave() ExecOption {
	return func(o *ExecOptions) { o.Leave = true }
}
