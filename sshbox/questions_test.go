package sshbox

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// TestForPassword shows which questions are for the user's current password.
func TestForPassword(t *testing.T) {
	for question, want := range map[string]bool{
		"Password: ":                              true,
		"Password":                                true,
		"password:":                               true,
		"Password for root@new.example.com:":      true,
		"root@fe80::1's password: ":               true,
		"Password for root@fe80::1:":              true,
		"(current) UNIX password: ":               true,
		"Welcome: to this host\nEnter password: ": true,
		"New password: ":                          false,
		"Retype new password: ":                   false,
		"Enter new UNIX password: ":               false,
		"One-time password (OATH) for `user': ":   false,
		"Password & verification code: ":          false,
		"Verification code: ":                     false,
		"Passcode or option (1-3): ":              false,
		"Your password has expired. Token: ":      false,
		"":                                        false,
	} {
		if asksForPassword(question, false) != want {
			t.Errorf("%q: %v", question, !want)
		}
	}
	if asksForPassword("Password: ", true) {
		t.Error("a question whose answer is echoed is for a password")
	}
}

// startAsker starts a server that asks questions by keyboard-interactive, each in a round of its
// own. asked gets each question with its answer.
func startAsker(t *testing.T, questions ...string) (c DialConfig, asked chan string) {
	asked = make(chan string, 20)
	config := &ssh.ServerConfig{KeyboardInteractiveCallback: func(
		_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge,
	) (*ssh.Permissions, error) {
		for _, q := range questions {
			answers, err := ask("", "", []string{q}, []bool{strings.HasSuffix(q, "(echo)")})
			if err != nil {
				return nil, err
			}
			asked <- q + answers[0]
		}
		return nil, errors.New("no")
	}}
	key := newKey(t, "")
	config.AddHostKey(key)
	address := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		ssh.NewServerConn(c, config)
		c.Close()
	}).Addr()
	c = DialConfig{Address: address.String(), User: "u"}
	c.HostKey = ssh.FixedHostKey(key.PublicKey())
	return c, asked
}

// TestQuestions shows that Password answers the first question for a password, and Answer answers
// the others.
func TestQuestions(t *testing.T) {
	t.Parallel()
	answer := func(q string) (string, error) { return "answer", nil }
	for _, c := range []struct {
		name      string
		questions []string
		change    func(*DialConfig)
		given     []string
		wantError string
	}{
		{"password", []string{"Password: "}, nil, []string{"Password: secret"}, "tried password"},
		{"twice", []string{"Password: ", "Password: "}, nil, []string{"Password: secret"},
			`asked ["Password: "]`},
		{"code", []string{"Password: ", "Verification code: "}, nil, []string{"Password: secret"},
			`asked ["Verification code: "]`},
		{"expired", []string{"Password: ", "New password: "}, nil, []string{"Password: secret"},
			`asked ["New password: "]`},
		{"echo", []string{"Password: (echo)"}, nil, nil, `asked ["Password: (echo)"]`},
		{"answers", []string{"Password: ", "Code: ", "Name? (echo)"},
			func(c *DialConfig) { c.Answer = answer },
			[]string{"Password: secret", "Code: answer", "Name? (echo)answer"},
			`an answer to "Code: "`},
		{"all by Answer", []string{"Password: "},
			func(c *DialConfig) { c.Password, c.Answer = "", answer },
			[]string{"Password: answer"}, `tried an answer to "Password: "`},
		{"Answer fails", []string{"Code: "},
			func(c *DialConfig) {
				c.Answer = func(string) (string, error) { return "", errors.New("no phone") }
			}, nil, "no phone"},
		{"Answer panics", []string{"Code: "},
			func(c *DialConfig) { c.Answer = func(string) (string, error) { panic("no luck") } },
			nil, "DialConfig.Answer panicked: no luck"},
		{"AskPassword fails", []string{"Password: "}, func(c *DialConfig) {
			c.Password = ""
			c.AskPassword = func() (string, error) { return "", errors.New("nobody there") }
		}, nil, "nobody there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, asked := startAsker(t, c.questions...)
			config.Password = "secret"
			if c.change != nil {
				c.change(&config)
			}
			_, err := Dial(t.Context(), config)
			var refused *LoginError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.wantError) {
				t.Errorf("not a LoginError that contains %q: %v", c.wantError, err)
			}
			var given []string
			for len(asked) > 0 {
				given = append(given, <-asked)
			}
			if !slices.Equal(given, c.given) {
				t.Errorf("the answers are %q, want %q", given, c.given)
			}
		})
	}
}

// TestCallbackBlocks shows that Dial returns when its context ends, even if a function of the
// caller does not return.
func TestCallbackBlocks(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	defer close(never)
	for name, change := range map[string]func(c *DialConfig, reached func()){
		"Answer": func(c *DialConfig, reached func()) {
			c.Answer = func(string) (string, error) { reached(); <-never; return "", nil }
		},
		"AskPassword": func(c *DialConfig, reached func()) {
			c.AskPassword = func() (string, error) { reached(); <-never; return "", nil }
		},
		"HostKey": func(c *DialConfig, reached func()) {
			c.Password = "x"
			c.HostKey = func(string, net.Addr, ssh.PublicKey) error {
				reached()
				<-never
				return nil
			}
		},
		"DialContext": func(c *DialConfig, reached func()) {
			c.Password = "x"
			c.DialContext = func(context.Context, string, string) (net.Conn, error) {
				reached()
				<-never
				return nil, errors.New("late")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, _ := startAsker(t, "Password: ")
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			change(&config, func() { cancel(why) })
			began := time.Now()
			_, err := Dial(ctx, config)
			took := time.Since(began)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || took > 10*time.Second {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
	t.Run("panics", func(t *testing.T) {
		config, _ := startAsker(t)
		config.Password = "x"
		config.HostKey = func(string, net.Addr, ssh.PublicKey) error { panic("no luck") }
		dialError(t, config, "DialConfig.HostKey panicked: no luck")
	})
}
