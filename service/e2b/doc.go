// Package e2b serves the API of E2B from the boxes of package service, so that programs written for
// E2B's SDKs use them unchanged.
//
//	http.ListenAndServe("127.0.0.1:3000", e2b.Handler(e2b.Config{
//		Service: s,
//		Keys:    func(key string) (owner string, ok bool) { … },
//	}))
//
// A client needs three variables: E2B_API_KEY, and E2B_API_URL and E2B_SANDBOX_URL, both with the
// address of the handler. Read docs/e2b.md in the module's repository first: it says which
// addresses clients use, what works, and what differs.
//
// # What it serves
//
// The control plane starts, lists, pauses, resumes and deletes boxes. A template is a spec of the
// service. E2B's timeout is when the service removes or pauses the box. The data plane runs
// programs, with or without a terminal, reads and writes files, and watches directories, in JSON
// and in Protocol Buffers. The code interpreter runs cells of Python in kernels of package jupyter.
// What is not served is answered with 501, and a text that names it.
//
// Programs that clients start end with this process, unlike the service's jobs. Until then their
// output is kept, within bounds, for a client that comes back.
//
// # Who may do what
//
// [Config.Keys] tells the owner of an API key, who sees only the boxes of that owner. A request of
// the data plane needs the box's access token, which the answer to the box's start has: an HMAC of
// its id under the service's secret. It stays the same as long as the box exists.
package e2b
