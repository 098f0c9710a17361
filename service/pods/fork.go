package pods

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// Fork returns errors.ErrUnsupported: a Place does not copy pods. It implements place.Place.
func (p *Place) Fork(context.Context, place.Attached, []place.Request, sandbox.LossKind) (
	[]place.Created, error) {
	return nil, fmt.Errorf("%w: a cluster cannot copy pods: Start another box, and copy what "+
		"it needs by CopyFrom and CopyTo", errors.ErrUnsupported)
}
