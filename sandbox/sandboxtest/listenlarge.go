package sandboxtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
)

// listenMany accepts 100 connections at once.
func listenMany(t *testing.T, b *box, l net.Listener) {
	ended := acceptor(l, echoes)
	got := b.client(t, l, `
ok = [False] * 100
start = threading.Barrier(len(ok))
def one(i):
    message = b"message %d " % i * 1000
    c = connect()
    start.wait() # all are connected at the same time
    c.sendall(message)
    half(c)
    ok[i] = rest(c) == message
    c.close()
threads = [threading.Thread(target=one, args=(i,)) for i in range(len(ok))]
for t in threads: t.start()
for t in threads: t.join()
print(ok.count(True))`)
	same(t, "100\n", got)
	b.closes(t, l, ended)
}

// listenLarge sends much, both ways at once.
func listenLarge(t *testing.T, b *box, l net.Listener) {
	size := b.suite.count(100_000_000)
	sums := make(chan string, 1)
	ended := acceptor(l, func(c net.Conn) error {
		wrote := make(chan error, 1)
		go func() {
			_, err := io.Copy(c, io.LimitReader(&numbered{}, int64(size)))
			wrote <- errors.Join(err, closeWrite(c))
		}()
		sum := sha256.New()
		n, err := io.Copy(sum, c)
		sums <- fmt.Sprintf("%d %x", n, sum.Sum(nil))
		return errors.Join(err, <-wrote)
	})
	want := sha256.New()
	io.Copy(want, io.LimitReader(&numbered{}, int64(size)))
	line := fmt.Sprintf("%d %x", size, want.Sum(nil))
	got := b.client(t, l, `
size, c = int(sys.argv[3]), connect()
def send():
    for at in range(0, size, 1 << 16):
        c.sendall((at.to_bytes(8, "big") + b"." * 0xfff8)[:size-at])
    half(c)
sending = threading.Thread(target=send)
sending.start()
sum, n = hashlib.sha256(), 0
while True:
    d = c.recv(1 << 16)
    if not d: break
    sum.update(d)
    n += len(d)
sending.join()
print(n, sum.hexdigest())`, strconv.Itoa(size))
	same(t, line+"\n", got)
	same(t, line, <-sums)
	b.closes(t, l, ended)
}

// numbered is an endless reader of blocks of 64 KiB. Each begins with its offset.
type numbered struct {
	next  uint64
	block []byte // the rest of the last block
}

func (n *numbered) Read(p []byte) (int, error) {
	if len(n.block) == 0 {
		n.block = append(binary.BigEndian.AppendUint64(nil, n.next),
			bytes.Repeat([]byte("."), 1<<16-8)...)
		n.next += 1 << 16
	}
	c := copy(p, n.block)
	n.block = n.block[c:]
	return c, nil
}
