// Package service has many boxes for many users: it starts, finds, pauses, resumes and deletes them
// by id, for years, across restarts of its own.
//
//	specs, err := service.NewSpecs(&service.Spec{
//		ID:        "python",
//		Config:    sshbox.Config{Image: "python:3-slim", Memory: 1 << 30},
//		Lifecycle: service.DefaultLifecycle,
//		Warm:      3,
//	})
//	…
//	s, err := service.New(service.Config{Specs: specs, Secret: secret})
//	…
//	defer s.Close()
//	info, err := s.Start(ctx, service.StartOptions{ID: conversation, Owner: user, Env: []string{"API_KEY=" + key}})
//	…
//	box, err := s.Open(ctx, info.ID)
//	…
//	result, err := box.Execute(ctx, "make test")
//
// # What there is
//
// A box belongs to an id and, if that matters, to an owner. A [Spec] says how boxes of one kind are
// made, and what becomes of them; [NewSpecs] keeps specs in memory, [OpenSpecs] reads them from
// YAML files, and a [Specs] of one's own from anywhere. [Service.Start] makes a box, or resumes the
// one that has the id. [Service.Get], [Service.BatchGet] and [Service.Search] tell of boxes, each
// as an [Info], and ask the engine each time. [Service.Open] returns a box as a sandbox.Sandbox,
// which all callers in the process share.
//
// If there is no box of an id, the error is [ErrNotFound]. After Close, it is sandbox.ErrClosed.
//
// # The engine is the database
//
// The service stores nothing itself. What it has to know after its own restart lies in the engine:
// in the names and labels of containers, and, since these labels never change, in the labels of an
// empty volume for each container, a note. So any number of processes can serve the same boxes
// (Config.Name and Secret are the same then), and one that is killed in the middle of a start, a
// pause or a deletion leaves a box that is found, or none: a container that has its name and its
// note is a box; without a note it is being started, as long as its maker lives, and is removed
// afterwards. The engine gives a name to one container only, so processes that start one id at once
// get one box.
//
// Nothing secret is stored. [Info.SessionKey] is an HMAC of the box and its generation under
// Config.Secret: a box that is started anew has another key. What StartOptions.Env has goes to the
// box over its own connection, and stays in its memory.
//
// A box is attached to one process at a time, however: see [Service.Open].
//
// # Pauses
//
// Pause stops a box's programs where they are; they keep their memory, and go on with Resume.
// Suspend writes the memory to disk, where the engine can. A box whose programs have ended (the
// machine was restarted, the kernel has killed them) counts as paused, too: Resume starts it again,
// with its files. Info.Kept says what a resume has brought back.
//
// A [Lifecycle] pauses what is idle and deletes what has not run for long. A box is idle when no
// command, job, connection or request goes on in it.
//
// # Boxes ahead
//
// With Spec.Warm each process keeps boxes ready that nobody has yet. Start gives one its
// environment, files, owner and id, and another is made. A box that has died meanwhile is not
// handed out; when none is ready, Start makes one.
//
// # Places
//
// [Docker] is a place, and pods.New of package service/pods, a Kubernetes cluster, where boxes
// cannot be paused. A [Place] is what the service needs of one; package service/servicetest tests
// one.
package service
