package remotebox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sandshell/sandshell/sandbox"
)

// HandOut takes a box by calling take, and hands it over with env and files, as HandOver does.
// ready says that the box was made ahead. Such a box may have died since. HandOut then discards it,
// calls died with the reason, and takes another. If HandOut fails, it leaves no box behind.
func HandOut[B EnvBox](ctx context.Context, env []string, files fs.FS,
	take func(ctx context.Context) (box B, ready bool, err error), discard func(B) error,
	died func(box B, err error)) (B, error) {
	var none B
	for {
		box, ready, err := take(ctx)
		if err != nil {
			return none, err
		}
		_, err = HandOver(ctx, box, env, files)
		if err == nil {
			return box, nil
		}
		dead := ready && ctx.Err() == nil &&
			(errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrTimeout))
		removal := discard(box)
		if !dead {
			return none, errors.Join(fmt.Errorf("hand over a box: %w", err), removal)
		}
		died(box, err)
	}
}
