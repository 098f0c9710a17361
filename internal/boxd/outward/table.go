package outward

import "container/list"

// A table gives keys numbers, and forgets those that have not been asked for the longest when there
// are too many. A number that was forgotten is given again only after all others. So who still uses
// it finds nothing, rather than something else.
type table[K comparable, V any] struct {
	most    int    // of keys
	numbers uint32 // how many numbers there are
	last    uint32 // that was given
	byKey   map[K]*list.Element
	byNum   map[uint32]*list.Element
	order   list.List // of entry[K, V]; the one that was asked for last is at the front
}

type entry[K comparable, V any] struct {
	key    K
	number uint32
	value  V
}

func newTable[K comparable, V any](most int, numbers uint32) *table[K, V] {
	return &table[K, V]{most: most, numbers: numbers, byKey: map[K]*list.Element{},
		byNum: map[uint32]*list.Element{}}
}

// number returns the number of a key, from 1 on, and sets its value.
func (t *table[K, V]) number(key K, value V) uint32 {
	if at := t.byKey[key]; at != nil {
		t.order.MoveToFront(at)
		e := at.Value.(*entry[K, V])
		e.value = value
		return e.number
	}
	if len(t.byKey) >= t.most {
		oldest := t.order.Remove(t.order.Back()).(*entry[K, V])
		delete(t.byKey, oldest.key)
		delete(t.byNum, oldest.number)
	}
	for {
		if t.last++; t.last >= t.numbers {
			t.last = 1
		}
		if t.byNum[t.last] == nil {
			break
		}
	}
	at := t.order.PushFront(&entry[K, V]{key, t.last, value})
	t.byKey[key], t.byNum[t.last] = at, at
	return t.last
}

// find returns the key and the value of a number.
func (t *table[K, V]) find(number uint32) (key K, value V, ok bool) {
	at := t.byNum[number]
	if at == nil {
		return key, value, false
	}
	t.order.MoveToFront(at)
	e := at.Value.(*entry[K, V])
	return e.key, e.value, true
}
