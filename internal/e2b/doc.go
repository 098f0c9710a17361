// Package e2b has the wire of E2B's API: the JSON of its control plane, which makes sandboxes, and
// the Connect protocol of its data plane, which starts programs and reads files in one of them.
// Package e2bbox is a client of both, and package service/e2b serves both.
//
// The data plane has 18 methods. Their messages are structs of this package, which [Binary] and
// [JSON] write and read: the tags "pb" are the numbers of Protocol Buffers' fields, the tags "json"
// the names of its JSON form. Nothing is generated, and unknown fields are ignored, as both forms
// demand.
//
// A [Control] is a client of the control plane, a [Client] one of the data plane. A [Login] starts
// programs in a sandbox, as package sshlogin needs it to bring boxd there.
package e2b
