package shellbox

// An Inspector is a Host that answers questions about its processes itself. The engine asks any other through a shell of the host's;
// control.sh has the requests and the answers. Inspect may be called from several goroutines, and returns within seconds. An error
// that is errors.ErrUnsupported has the engine ask the shell after all.
type Inspector interface {
	Inspect(request string) (answer string, err error)
}
